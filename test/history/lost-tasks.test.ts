import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { segmentEvents } from '../../src/history/follow-history.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { createProjector } from '../../src/history/projection.js';
import type { DurableEvent } from '../../src/history/durable-steps.js';
import { messageSignal } from '../../src/workflows/messages/definitions.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';
import { SHORT } from '../support/scripts.js';

let rig: Rig;
let client: PerdureClient;
beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** Takes a workflow task as a worker would. Returns its token. */
async function takeTask(): Promise<Uint8Array> {
  const { connection, workflowService, options } = rig.client;
  const poll = { namespace: options.namespace, taskQueue: { name: rig.taskQueue } };
  for (;;) {
    const { taskToken } = await connection.withDeadline(Date.now() + 70_000, () =>
      workflowService.pollWorkflowTaskQueue(poll),
    );
    if (taskToken.length > 0) return taskToken;
  }
}

async function failTask(taskToken: Uint8Array): Promise<void> {
  const { workflowService, options } = rig.client;
  await workflowService.respondWorkflowTaskFailed({ namespace: options.namespace, taskToken });
}

describe('a reader that sees a workflow task which never appears in the history', () => {
  test('reads the events that get the ids of the task', async () => {
    const id = `lost-${randomUUID()}`;
    const input = { agent: 'clerk', message: 'one', open: true };
    const { workflowId, firstExecutionRunId: runId } = await rig.client.workflow.start('agent', {
      taskQueue: rig.taskQueue,
      workflowId: id,
      args: [input],
    });
    await failTask(await takeTask());
    // From its second attempt on, a task is shown to readers and is not in the history.
    const second = await takeTask();

    const left = new AbortController();
    const facts: HistoryEvent[] = [];
    const followed: DurableEvent[] = [];
    const reading = Promise.all([
      (async () => {
        const segment = { id: workflowId, runId, signal: left.signal };
        for await (const page of segmentEvents(rig.client, segment)) facts.push(...page);
      })(),
      (async () => {
        for await (const event of client.events(id, { signal: left.signal })) followed.push(event);
      })(),
    ]);
    reading.catch(() => undefined);
    const result = client.result(id, { turn: 2, signal: AbortSignal.timeout(30_000) });
    result.catch(() => undefined);
    await expect.poll(() => facts.at(-1)?.type).toBe('task-started');
    const lost = facts.at(-1)?.id;

    await rig.client.workflow.getHandle(id).signal(messageSignal, { id: 'two', message: 'two' });
    await failTask(second);
    await rig.worker([clerk()], { models: { m: obedientModel() } });
    await expect(result).resolves.toMatchObject({ answer: 'done: two' });
    await client.close(id);
    await client.result(id);
    await expect
      .poll(() => [facts.at(-1)?.type, followed.at(-1)?.type])
      .toEqual(['ended', 'run-ended']);
    left.abort();
    await reading;

    const signal = facts.find(({ type }) => type === 'signal');
    expect(signal?.id).toBeLessThanOrEqual(lost ?? 0);
    const fresh: DurableEvent[] = [];
    for await (const event of client.events(id)) fresh.push(event);
    expect(fresh.flatMap((event) => (event.type === 'turn-ended' ? [event.turn] : []))).toEqual([
      1, 2,
    ]);
    expect(followed).toEqual(fresh);
  });
});

describe('the beginning of a task', () => {
  const at = Date.now();
  const started: HistoryEvent = {
    id: 1,
    at,
    type: 'started',
    workflowType: 'agent',
    input: { agent: 'clerk', open: true },
    carried: null,
    previousRunId: '',
    start: { cronSchedule: '', hasRetryPolicy: false, hasParent: false, isContinued: false },
    firstRunId: 'r',
    root: 'r',
  };

  test('advances no reader before a later event confirms it', () => {
    const projector = createProjector();
    projector.push(started);
    projector.push({ id: 2, at, type: 'task-scheduled' });
    projector.push({ id: 3, at, type: 'task-started', segment: SHORT });
    expect(projector.view().lastEvent).toBe(1);
    projector.push({ id: 2, at, type: 'cancel-requested' });
    expect(projector.view()).toMatchObject({ lastEvent: 2, cancelRequested: true });
  });
});

test('a run whose end waits for a worker is working for every reader', async () => {
  await rig.worker([clerk()], { models: { m: obedientModel() } });
  const { id } = await client.start('clerk', { message: 'one', open: true });
  await client.result(id, { turn: 1 });
  await expect.poll(async () => (await client.status(id)).status).toBe('waiting_message');
  await rig.stopWorkers();
  await client.cancel(id);
  const status = await client.status(id);
  expect(status).toMatchObject({ status: 'working', reason: null });
  expect(status.message).toMatch(
    /^a cancel is requested.*; the run ends when a worker carries it out$/,
  );
  // The row is read from the search attributes, which the worker wrote before.
  const { rows } = await client.list({ idPrefix: id });
  expect(rows.map((row) => row.status)).not.toContain('cancelled');
  await rig.worker([clerk()], { models: { m: obedientModel() } });
  await expect(client.result(id)).resolves.toMatchObject({ status: 'cancelled' });
  expect(await client.status(id)).toMatchObject({ status: 'done', reason: 'cancelled' });
});
