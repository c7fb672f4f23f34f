import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { probeAgents, hasLiveWorker } from '../../src/temporal/pollers.js';
import { createRig, type Rig } from '../support/rig.js';
import { waitUntilPolling } from '../support/wait-until-polling.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  const call = { name: 'called', description: 'Helps.', instructions: 'x', model: 'demo' };
  const agent = defineAgent({ ...call, name: 'desk', agents: [defineAgent(call)] });
  const { identity } = await rig.worker([agent]);
  await waitUntilPolling(rig.client, { taskQueue: rig.taskQueue, identity });
});
afterAll(async () => await rig.close());

test('a worker reports which agents it has, and which it lacks', async () => {
  const { client, taskQueue } = rig;
  expect(await hasLiveWorker(client, taskQueue)).toBe(true);
  const agents = ['desk', 'called', 'dsek'];
  expect(await probeAgents(client, { taskQueue, agents })).toEqual({
    worker: expect.stringContaining(`${process.pid}@`),
    agents: ['called', 'desk'],
    missing: ['dsek'],
    hasProbe: true,
  });
});
