import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import type { History } from '../../src/history/history-event.js';
import { idempotencyKey } from '../../src/core/transcript/call-result.js';
import type { Effect } from '../../src/core/definition/tool-definition.js';
import { sha256Hex } from '../../src/core/text/json.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { RunState } from '../../src/core/state/state.js';
import type { Model } from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { childOf } from '../support/child-runs.js';
import { clientOf } from '../support/clerk.js';
import { asking, decide } from '../support/conversation.js';
import { gate, type Gate } from '../support/gate.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { ownBundle } from '../support/own-bundle.js';
import { STATE_VERSION } from '../../src/core/segments/migrations.js';
import { createRig, type Rig } from '../support/rig.js';
import { begun, config } from '../support/scripts.js';

let rig: Rig;
let ledger: Ledger;
/** Holds the called agent after its tools have run. */
let hold: Gate;
/** The question for the called agent; another one after a reset is another call. */
let order: string;

const effectTool = (name: string, effect: Effect) =>
  defineTool({
    name,
    description: name,
    input: z.object({ order: z.string() }),
    effect,
    async execute(input, { idempotencyKey: key }) {
      const body = JSON.stringify({ tool: name, key, input });
      return await (await fetch(ledger.url, { method: 'POST', body })).text();
    },
  });

const worker: Model = {
  async call({ messages }) {
    const given = messages[0]?.text ?? '';
    if (!messages.some(({ role }) => role === 'tool')) {
      const input = { order: given };
      return replyCalls([
        { name: 'pay', arguments: input },
        { name: 'book', arguments: input },
      ]);
    }
    await hold.wait();
    const notes = messages.filter(({ role, text }) => role === 'tool' && text.includes('note'));
    if (notes.length === 2) return replyText(`did ${given}`);
    return replyCall('note', { order: `${given} ${notes.length + 1}` });
  },
};
const chief: Model = {
  async call({ messages }) {
    const result = messages.find(({ role }) => role === 'tool');
    if (result !== undefined) return replyText(`heard: ${result.text}`);
    return replyCall('worker', { message: order });
  },
};
const hand = defineAgent({
  name: 'worker',
  description: 'works',
  instructions: 'do it',
  model: 'worker',
  tools: [effectTool('pay', 'once'), effectTool('book', 'keyed'), effectTool('note', 'keyed')],
});
const boss = defineAgent({
  name: 'chief',
  instructions: 'have it done',
  model: 'chief',
  agents: [hand],
});

beforeAll(async () => {
  [rig, ledger] = [await createRig(), await startLedger()];
  const workflowBundle = await ownBundle();
  // The called agent makes its second note in a second segment.
  const segment = { steps: 2, bytes: 1e6 };
  await rig.worker([boss, hand], { models: { worker, chief }, workflowBundle, segment });
});
afterAll(async () => {
  await rig.close();
  await ledger.close();
});
beforeEach(() => {
  hold = gate();
  order = randomUUID();
});

const tried = (tool: string): readonly string[] =>
  ledger.attempts.filter((each) => each.tool === tool && same(each.input)).map(({ key }) => key);
const same = (input: unknown): boolean => JSON.stringify(input).includes(order);

/** Starts a caller and waits until its agent has paid and booked. */
async function started(): Promise<{ handle: WorkflowHandle; child: WorkflowHandle }> {
  const handle = await rig.start({ agent: 'chief', message: 'go' });
  await hold.reached;
  return { handle, child: await childOf(rig.client, handle) };
}

/**
 * The workflow task to which a reset goes back: the first one, or the first after the child has
 * started.
 */
function taskBefore({ events }: History, point: 'initiation' | 'end of the child'): bigint {
  const from =
    point === 'initiation'
      ? 0
      : (events ?? []).findIndex((event) => event.childWorkflowExecutionStartedEventAttributes);
  const task = (events ?? [])
    .slice(from)
    .find((event) => event.workflowTaskCompletedEventAttributes);
  return BigInt(String(task?.eventId));
}

/** Resets a run with Temporal's own API. @returns the handle of its newest run */
async function reset(
  { workflowId }: WorkflowHandle,
  point: Parameters<typeof taskBefore>[1] = 'initiation',
): Promise<WorkflowHandle> {
  const history = await rig.client.workflow.getHandle(workflowId).fetchHistory();
  const { runId } = await rig.client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
    reason: 'test',
    requestId: randomUUID(),
    // oxlint-disable-next-line typescript/no-explicit-any -- a Long, of which a number will do
    workflowTaskFinishEventId: Number(taskBefore(history, point)) as never,
  });
  return rig.client.workflow.getHandle(workflowId, runId);
}

const activities = async (handle: WorkflowHandle): Promise<readonly string[]> =>
  ((await handle.describe()).raw.pendingActivities ?? []).map(
    ({ activityType }) => activityType?.name ?? '',
  );
async function followed(handle: WorkflowHandle): Promise<void> {
  const look = async () => expect(await activities(handle)).toContain('followRun');
  await vi.waitFor(look, { timeout: 30_000, interval: 20 });
}

/**
 * Computed by hand: from the call's key, which is in the input on the server, and the place in the
 * called run.
 */
async function keyOfSecondNote(child: WorkflowHandle, parent: WorkflowHandle): Promise<string> {
  const [fact] = ((await child.fetchHistory()).events ?? []).map(decodeEvent);
  const { called } = (fact?.type === 'started' ? fact.input : {}) as { called: { key: string } };
  const run = { namespace: 'default', workflowId: parent.workflowId, firstRunId: called.key };
  const digest = sha256Hex(JSON.stringify({ order: `${order} 2` }));
  return idempotencyKey({ ...run, turn: 1, step: 3, index: 0 }, { name: 'note', digest });
}

describe('a caller that is reset while its agent runs', () => {
  test('to before the call follows the existing run, and nothing is done twice', async () => {
    const { handle, child } = await started();
    const again = await reset(handle);
    await followed(again);
    hold.release();
    const { outcome, projection } = await rig.end(again);
    expect(outcome).toMatchObject({ status: 'completed', answer: `heard: did ${order}` });
    expect(projection.turns.at(-1)?.outcome).toEqual(outcome);
    expect(outcome.usage).toEqual({ ...outcome.usage, inputTokens: 60 });
    expect([tried('pay').length, tried('book').length]).toEqual([1, 1]);
    expect((await child.describe()).status.name).toBe('COMPLETED');
    expect(tried('note')[1]).toBe(await keyOfSecondNote(child, handle));
  });

  test('to after the call gets the result from Temporal itself', async () => {
    const { handle } = await started();
    const again = await reset(handle, 'end of the child');
    hold.release();
    const { outcome } = await rig.end(again);
    expect(outcome.answer).toBe(`heard: did ${order}`);
    expect([tried('pay').length, tried('book').length]).toEqual([1, 1]);
  });

  test('is answered at once by a run that has ended meanwhile', async () => {
    const { handle } = await started();
    hold.release();
    await rig.end(handle);
    const { outcome } = await rig.end(await reset(handle));
    expect(outcome.answer).toBe(`heard: did ${order}`);
    expect([tried('pay').length, tried('book').length]).toEqual([1, 1]);
  });

  test('cancels the run that it follows when it is canceled', async () => {
    const { handle, child } = await started();
    const again = await reset(handle);
    await followed(again);
    await again.cancel();
    const { outcome, projection } = await rig.end(again);
    expect(outcome.status).toBe('cancelled');
    expect(projection.messages.at(-1)?.text).toContain('cancelled');
    expect((await child.describe()).status.name).toBe('CANCELLED');
    hold.release();
  });

  test('starts a new run for a call with other arguments', async () => {
    const { handle, child } = await started();
    const first = order;
    order = randomUUID();
    const again = await reset(handle);
    const other = await childOf(rig.client, again);
    expect(other.workflowId).not.toBe(child.workflowId);
    hold.release();
    expect((await rig.end(again)).outcome.answer).toBe(`heard: did ${order}`);
    expect(await child.result()).toMatchObject({ answer: `did ${first}` });
  });

  test('runs a terminated agent again with the same keys, and asks about `once` calls', async () => {
    const { handle, child } = await started();
    const again = await reset(handle);
    await followed(again);
    await child.terminate();
    const rerun = rig.client.workflow.getHandle(child.workflowId);
    const status = await asking(rerun);
    expect(status).toMatchObject({ reason: 'outcome_unknown' });
    hold.release();
    await decide(rerun, { as: 'happened', result: 'paid' });
    const { outcome } = await rig.end(again);
    expect(outcome.answer).toBe(`heard: did ${order}`);
    const booked = tried('book');
    expect(booked).toEqual([booked[0], booked[0]]);
    expect(tried('pay')).toEqual([status.pending[0]?.idempotencyKey]);
    await rig.end(rerun);
  });
});

describe("a user's own workflow that is reset while its agent runs", () => {
  test('follows the existing run; two equal calls stay two', async () => {
    const handle = await rig.client.workflow.start('caller', {
      taskQueue: rig.taskQueue,
      workflowId: `caller-${randomUUID()}`,
      args: [{ agent: 'worker', message: order }],
    });
    await hold.reached;
    const again = await reset(handle);
    await followed(again);
    hold.release();
    const outcomes = (await again.result()) as Outcome[];
    expect(outcomes.map(({ answer }) => answer)).toEqual([`did ${order}`, `did ${order}`]);
    for (const tool of ['pay', 'book']) {
      expect(tried(tool)).toHaveLength(2);
      expect(new Set(tried(tool)).size).toBe(2);
    }
  });
});

describe("a user's own workflow that continues as new into an agent", () => {
  const forged = async (carried: unknown): Promise<string> => {
    const input = { agent: 'chief', message: 'go' };
    const handle = await rig.client.workflow.start('forger', {
      taskQueue: rig.taskQueue,
      workflowId: `forger-${randomUUID()}`,
      args: [input, carried],
    });
    const error: unknown = await handle.result().catch((failure: unknown) => failure);
    const { cause } = error as { cause?: Error };
    return cause?.message ?? String(error);
  };
  const state = JSON.parse(JSON.stringify(begun(config({ name: 'chief' })))) as RunState;

  test('with the state of a newer version waits for it undamaged, and each reader says so', async () => {
    const carried = { schema: STATE_VERSION + 1, state, shown: '' };
    const handle = await rig.client.workflow.start('forger', {
      taskQueue: rig.taskQueue,
      workflowId: `forger-${randomUUID()}`,
      args: [{ agent: 'chief', message: 'go' }, carried],
    });
    const client = await clientOf(rig);
    const id = handle.workflowId;
    const newer = `a newer version of perdure wrote the run: the run's state has schema version ${STATE_VERSION + 1}`;
    await vi.waitFor(
      async () => {
        const { raw } = await rig.client.workflow.getHandle(id).describe();
        expect(raw.pendingWorkflowTask?.attempt).toBeGreaterThan(2);
      },
      { timeout: 45_000, interval: 200 },
    );
    expect(await client.status(id)).toMatchObject({
      status: 'working',
      message: expect.stringContaining(newer),
    });
    await expect(client.transcript(id)).rejects.toThrow(newer);
    await expect(client.calls(id)).rejects.toThrow(newer);
    await vi.waitFor(
      async () => {
        const { rows } = await client.list({ idPrefix: id });
        // By its attributes and its memo, without its history.
        expect(rows).toMatchObject([
          { id, agent: 'chief', unreadable: expect.stringContaining(newer) },
        ]);
      },
      { timeout: 30_000, interval: 100 },
    );
    const { events } = await rig.client.workflow.getHandle(id).fetchHistory();
    expect(events?.some((one) => one.workflowTaskCompletedEventAttributes)).toBe(false);
    await client.disconnect();
    await rig.client.workflow.getHandle(id).terminate();
  });

  test('has to pass a complete state, with the hash of its definition', async () => {
    const part = { ...state, inbox: { ...state.inbox, waiting: [{ id: 7 }] } };
    expect(await forged({ schema: STATE_VERSION, state: part, shown: '' })).toContain(
      'carried.state.inbox.waiting[0].id: expected a string, got 7',
    );
    expect(await forged({ schema: 'x' })).toContain('carried.schema: expected a whole number');
    expect(await forged({ schema: STATE_VERSION, state, shown: '' })).toContain('definition.hash');
  });
});
