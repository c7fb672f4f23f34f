import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { askForAgents, hasLiveWorker } from '../../src/temporal/probe-worker.js';
import { createRig, type Rig } from '../support/rig.js';
import { untilPolls } from '../support/until-polls.js';

/** The server deletes an ended workflow when it next writes the state of its queues, after 30 to 60 s. */
const DELETED_WITHIN_MS = 120_000;

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  const call = { name: 'called', description: 'Helps.', instructions: 'x', model: 'demo' };
  const agent = defineAgent({ ...call, name: 'desk', agents: [defineAgent(call)] });
  const { identity } = await rig.worker([agent]);
  await untilPolls(rig.client, { taskQueue: rig.taskQueue, identity });
});
afterAll(async () => await rig.close());

test('a worker says which agents it lacks, and probes are deleted', async () => {
  const { client, taskQueue } = rig;
  expect(await hasLiveWorker(client, taskQueue)).toBe(true);
  const agents = ['desk', 'called', 'dsek'];
  expect(await askForAgents(client, { taskQueue, agents })).toEqual({
    worker: expect.stringContaining(`${process.pid}@`),
    missing: ['dsek'],
  });
  const listed = async (): Promise<readonly string[]> => {
    const ids: string[] = [];
    const query = `TaskQueue = '${taskQueue}'`;
    for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
    return ids;
  };
  await vi.waitFor(async () => expect(await listed()).toHaveLength(2), { timeout: 10_000 });
  const patience = { timeout: DELETED_WITHIN_MS, interval: 1_000 };
  await vi.waitFor(async () => expect(await listed()).toEqual([]), patience);
}, 150_000);
