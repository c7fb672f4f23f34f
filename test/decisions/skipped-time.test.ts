import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { Graph } from '../../src/graphs/graph-options.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createRig } from '../support/rig.js';
import { testServer, type TestServer } from '../support/temporal-server.js';

const DAY_SECONDS = 86_400;
let server: TestServer;
let desk: Desk;

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  input: z.object({ euros: z.number() }),
  execute: ({ euros }) => {
    desk.did(`pay ${euros}`);
    return 'paid';
  },
});
const options = { instructions: 'Pay.', model: 'script', tools: [pay] };
const patient = defineAgent({ ...options, name: 'patient', rules: [{ tool: 'pay', then: 'ask' }] });
const yearly = defineAgent({
  ...options,
  name: 'yearly',
  rules: [{ tool: 'pay', then: 'ask', expires: 90 * DAY_SECONDS * 1_000 }],
});

const book = defineTool({
  name: 'book',
  description: 'Books.',
  effect: 'keyed',
  input: z.object({ room: z.string() }),
  output: z.object({ booking: z.string() }),
  execute: ({ room }) => {
    desk.did(`book ${room}`);
    return { booking: `${room}-1` };
  },
});
/** The planner as first deployed, and later with other words. */
const planner = (instructions: string): Graph =>
  planAndExecute({
    name: 'planner',
    instructions,
    model: 'script',
    tools: [pay, book],
    rules: [{ tool: 'pay', then: 'ask' }],
    confirm: { expires: 90 * DAY_SECONDS * 1_000 },
  });

beforeAll(async () => {
  server = await testServer(['frontend.WorkflowTimeSkippingEnabled=true']);
  desk = await createDesk(await createRig(server.address));
  await desk.work([patient, yearly, planner('Plan.')]);
});
beforeEach(() => desk.reset());
afterAll(async () => {
  await desk.close();
  await server.stop();
});

/** Starts a run for which this many seconds pass as soon as it waits. */
async function startSkipping(input: RunInput, seconds: number): Promise<WorkflowHandle> {
  const { client, taskQueue } = desk.rig;
  const workflowId = `run-${randomUUID()}`;
  await client.workflowService.startWorkflowExecution({
    namespace: 'default',
    workflowId,
    workflowType: { name: 'agent' },
    taskQueue: { name: taskQueue },
    requestId: randomUUID(),
    input: { payloads: [defaultPayloadConverter.toPayload(input)] },
    timeSkippingConfig: {
      enabled: true,
      fastForwardConfig: { id: 'f-1', duration: { seconds } as never },
    },
  });
  return client.workflow.getHandle(workflowId);
}

/** How long the request has been open, by the server's clock. */
async function daysOpen(handle: WorkflowHandle): Promise<number> {
  const { events } = await handle.fetchHistory();
  const at = Number(events?.at(-1)?.eventTime?.seconds ?? 0);
  const from = Number(events?.at(0)?.eventTime?.seconds ?? 0);
  return Math.round((at - from) / DAY_SECONDS);
}

test.each([
  ['eleven minutes', 11 * 60, 0],
  ['180 days', 180 * DAY_SECONDS, 180],
])('a request is approved after %s', async (_, seconds, days) => {
  desk.script([{ pay: { euros: 7 } }, 'Paid.']);
  const handle = await startSkipping({ agent: 'patient', message: 'pay' }, seconds);
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve' });
  expect((await desk.end(handle)).outcome).toMatchObject({ status: 'completed', answer: 'Paid.' });
  expect(await daysOpen(handle)).toBe(days);
  expect(desk.done).toEqual(['pay 7']);
});

test('a request that waits for 90 days at most is denied after that', async () => {
  desk.script([{ pay: { euros: 7 } }, 'Nobody came.']);
  const handle = await startSkipping({ agent: 'yearly', message: 'pay' }, 180 * DAY_SECONDS);
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Nobody came.' });
  expect(await daysOpen(handle)).toBe(90);
  expect(desk.done).toEqual([]);
  expect(desk.lastResults()).toEqual([expect.stringContaining('no decision within 90 days')]);
});

test('a plan is confirmed after 30 days, on workers of another version', async () => {
  const actions = [
    { id: 'a1', tool: 'book', arguments: { room: 'blue' } },
    { id: 'a2', tool: 'pay', arguments: { euros: 7 }, after: ['a1'] },
  ];
  desk.script([JSON.stringify({ actions }), 'Booked and paid.']);
  const handle = await startSkipping({ agent: 'planner', message: 'go' }, 30 * DAY_SECONDS);
  const { pending } = await desk.statusWhere(handle, (status) => status.pending.length === 1);
  expect(desk.done).toEqual([]);
  await desk.rig.stopWorkers();
  await desk.work([patient, yearly, planner('Plan with care.')]);
  const [again] = (await desk.statusWhere(handle, (status) => status.pending.length === 1)).pending;
  expect(again?.digest).toBe(pending[0]?.digest);
  await desk.decide(handle, { as: 'approve' });
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Booked and paid.' });
  expect(await daysOpen(handle)).toBe(30);
  expect(desk.done).toEqual(['book blue', 'pay 7']);
});
