import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { createGate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createDesk, type Desk } from '../support/requests.js';

const gate = createGate();
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  effect: 'read',
  execute: async (_, { signal }) => {
    await gate.wait(signal);
    return 'seen';
  },
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({}),
  effect: 'once',
  approval: 'always',
  execute: async () => 'paid',
});
const agent = defineAgent({
  name: 'desk',
  instructions: 'Help.',
  model: 'script',
  tools: [look, refund],
});

let desk: Desk;
let client: PerdureClient;
beforeAll(async () => {
  const rig = await createMemoryRig();
  desk = await createDesk(rig);
  client = await clientOf(rig);
  await desk.work([agent], { segment: { steps: 1, bytes: 2_000_000 } });
});
afterAll(async () => {
  await client.disconnect();
  await desk.close();
});

/** Returns the steps about requests and calls, with the number of their segment. */
async function stepsOf(id: string): Promise<readonly string[]> {
  const steps: string[] = [];
  let segment = 1;
  for await (const step of client.events(id)) {
    if (step.type === 'segment-begun') ({ segment } = step);
    if (step.type === 'request-raised') steps.push(`${segment}: ${step.why}`);
    if (step.type === 'request-closed') steps.push(`${segment}: ${step.as} by ${step.by}`);
    if (step.type === 'call-finished') steps.push(`${segment}: ${step.tool} finished`);
  }
  return steps;
}

test('a request of the workflow task that ends a segment is raised there, and closed in the next one', async () => {
  desk.script([{ refund: {} }, 'Paid.']);
  const { handle } = await desk.asked({ agent: 'desk', message: 'Refund' });
  await desk.decide(handle, { as: 'approve', by: 'bob' });
  await desk.end(handle);
  expect(await stepsOf(handle.workflowId)).toEqual([
    '1: the tool requires approval of every call',
    '2: approve by bob',
    '2: refund finished',
  ]);
});

test('a request that was open before a segment ends is neither closed nor raised at the boundary', async () => {
  desk.script([[{ look: {} }, { refund: {} }], 'Paid.']);
  const handle = await desk.rig.start({ agent: 'desk', message: 'Refund' });
  await desk.statusWhere(handle, ({ pending }) => pending.length > 0);
  gate.barrier.release();
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_decision');
  await desk.decide(handle, { as: 'approve', by: 'bob' });
  await desk.end(handle);
  expect(await stepsOf(handle.workflowId)).toEqual([
    '1: the tool requires approval of every call',
    '2: approve by bob',
    '2: look finished',
    '2: refund finished',
  ]);
});
