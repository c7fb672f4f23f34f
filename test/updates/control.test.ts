import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { askRun, type DeliveredMessage } from '../../src/updates/ask.js';
import { cancelTurn, closeRun, pauseRun, setLimits, resumeRun } from '../../src/updates/decide.js';
import { reached, followSegments } from '../../src/history/follow-history.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import type { Model } from '../../src/models/model.js';
import type { Archive } from '../../src/storage/blob-store.js';
import { replyText } from '../../src/testing/replies.js';
import { expectDelivered } from '../support/delivered.js';
import { setLimitsUpdate } from '../../src/workflows/messages/definitions.js';
import { createGate, type Gate } from '../../src/testing/play.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn } from '../support/segments.js';
import { NoRunError, RefusedError } from '../../src/core/errors.js';

let rig: Rig;
const gates = new Map<string, Gate>();

/** Replies with the newest message. The reply to a message that begins with `hold` waits for its gate. */
const model: Model = {
  async call({ messages }, { signal }) {
    const text = messages.findLast(({ role }) => role === 'user')?.text ?? '';
    await gates.get(text)?.wait(signal);
    return replyText(`re: ${text}`);
  },
};

const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });

/** Holds what is archived while it is set. */
let holding: Gate | null = null;
const archive: Archive = {
  write: async () => await holding?.wait(new AbortController().signal),
  list: () => Promise.resolve([]),
  read: () => Promise.reject(new Error('nothing is archived')),
};

beforeAll(async () => {
  rig = await createMemoryRig();
  const models = { m: model };
  // Each turn ends its segment.
  await rig.worker([agent], { models, archive, segment: { steps: 1, bytes: 1_000_000 } });
});
afterAll(async () => await rig.close());

async function open(message: string): Promise<WorkflowHandle> {
  return await rig.start({ agent: 'a', open: true, message });
}

async function held(): Promise<{ handle: WorkflowHandle; gate: Gate }> {
  const text = `hold ${randomUUID()}`;
  const gate = createGate();
  gates.set(text, gate);
  const handle = await open(text);
  await gate.barrier.reached;
  return { handle, gate };
}

/** Returns the options to follow a run. */
async function place(handle: WorkflowHandle): Promise<{ runId: string; signal: AbortSignal }> {
  return { runId: (await handle.describe()).runId, signal: new AbortController().signal };
}

async function outcomeOfTurn(handle: WorkflowHandle, turn: number): Promise<Outcome> {
  const from = { id: handle.workflowId, ...(await place(handle)) };
  for await (const { view } of followSegments(rig.client, from)) {
    const end = reached(view, { turn });
    if (end?.type === 'turn-ended') return end.ended.outcome;
  }
  throw new Error(`turn ${turn} did not end`);
}

describe('messages', () => {
  test('that arrive while the run continues in a new segment are neither lost nor duplicated', async () => {
    const handle = await open('m0');
    const id = handle.workflowId;
    const count = 14;
    const asked: Promise<DeliveredMessage>[] = [];
    const send = (number: number): void => {
      asked.push(
        expectDelivered(askRun(rig.client, id, { message: `m${number}`, id: `id-${number}` })),
      );
    };
    // The segment ends when the turn ends.
    for await (const { view } of followSegments(rig.client, { id, ...(await place(handle)) })) {
      const over = view.state?.recent.at(-1)?.turn ?? 0;
      while (asked.length < Math.min(over, count)) send(asked.length + 1);
      if (over > count) break;
    }
    const sent = await Promise.all(asked);
    const again = await askRun(rig.client, id, { message: 'm1', id: 'id-1' });
    expect(again).toEqual({ ...sent[0], duplicate: true });
    await closeRun(rig.client, id);
    expect(await handle.result()).toMatchObject({ reason: 'closed', steps: count + 1 });
    const segments = await segmentsOf(rig.client, id);
    expect(segments.length).toBeGreaterThan(count / 2);
    const messages = messagesIn(segments).filter(({ role }) => role === 'user');
    expect(messages.map(({ text }) => text)).toEqual(
      Array.from({ length: count + 1 }, (_, number) => `m${number}`),
    );
    for (const [at, { turn }] of sent.entries()) {
      const answer = turnsIn(segments).find((over) => over.turn === turn)?.outcome.answer;
      expect(answer).toBe(`re: m${at + 1}`);
    }
  });

  test('get an id if they have none', async () => {
    const handle = await open('hello');
    const first = await askRun(rig.client, handle.workflowId, { message: 'one' });
    const again = await askRun(rig.client, handle.workflowId, {
      message: 'one',
      id: first.messageId,
    });
    expect(again).toMatchObject({ turn: 2, messageId: first.messageId });
  });

  test('are refused with the reason: an invalid form, the run, or its end', async () => {
    const handle = await open('hello');
    const id = handle.workflowId;
    await expect(askRun(rig.client, id, { message: ' ' })).rejects.toThrow(
      'message: expected text',
    );
    await closeRun(rig.client, id);
    await handle.result();
    const late = askRun(rig.client, id, { message: 'late' });
    await expect(late).rejects.toThrow(`run ${id} has ended`);
    await expect(late).rejects.toBeInstanceOf(RefusedError);
    const lost = askRun(rig.client, 'no-such-run', { message: 'x' });
    await expect(lost).rejects.toThrow('there is no run "no-such-run"');
    await expect(lost).rejects.toBeInstanceOf(NoRunError);
  });
});

describe('control', () => {
  test('cancels the current turn, and the run continues', async () => {
    const { handle } = await held();
    const id = handle.workflowId;
    expect(await cancelTurn(rig.client, id)).toBe(1);
    expect(await outcomeOfTurn(handle, 1)).toMatchObject({ status: 'cancelled' });
    await expect(cancelTurn(rig.client, id)).rejects.toThrow('no turn is under way');
    const { turn } = await expectDelivered(askRun(rig.client, id, { message: 'next' }));
    expect(await outcomeOfTurn(handle, turn)).toMatchObject({ answer: 're: next' });
  });

  test('refuses to cancel a turn of a run that is ending as one that has ended', async () => {
    const handle = await open('hello');
    const id = handle.workflowId;
    await outcomeOfTurn(handle, 1);
    const end = createGate();
    holding = end;
    await closeRun(rig.client, id);
    await end.barrier.reached;
    // The workflow is still there, while its readers see the end.
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const late = cancelTurn(rig.client, id, { turn: 1 });
    await expect(late).rejects.toMatchObject({ code: 'refused', reason: 'run_ended' });
    holding = null;
    end.barrier.release();
    await handle.result();
    const after = cancelTurn(rig.client, id, { turn: 1 });
    await expect(after).rejects.toMatchObject({ code: 'refused', reason: 'run_ended' });
  });

  test('pauses a run, which queues its messages until it is resumed', async () => {
    const { handle, gate } = await held();
    const id = handle.workflowId;
    await pauseRun(rig.client, id);
    const { turn } = await expectDelivered(askRun(rig.client, id, { message: 'later' }));
    gate.barrier.release();
    expect(await outcomeOfTurn(handle, 1)).toMatchObject({ status: 'completed' });
    expect(await handle.query('status')).toMatchObject({ status: 'paused', turn: 1, queued: 1 });
    await resumeRun(rig.client, id);
    expect(await outcomeOfTurn(handle, turn)).toMatchObject({ answer: 're: later' });
  });

  test('replaces only the given limits', async () => {
    const handle = await open('hello');
    const set = await setLimits(rig.client, handle.workflowId, { steps: 7, run: { tokens: 900 } });
    expect(set).toEqual({ turn: { steps: 7, toolCalls: 200 }, run: { tokens: 900 } });
    const refused = setLimits(rig.client, handle.workflowId, { steps: 0 });
    await expect(refused).rejects.toThrow('limits.steps: expected a positive whole number');
  });

  test.for([
    { given: { steps: 7 }, error: undefined },
    { given: { costUsd: 1 }, error: 'the price of model "m" is unknown' },
  ])('waits with limits until the agent is loaded: $given', async ({ given, error }) => {
    const other = await createMemoryRig();
    try {
      const startWorkflowOperation = new WithStartWorkflowOperation('agent', {
        workflowId: `run-${randomUUID()}`,
        taskQueue: other.taskQueue,
        args: [{ agent: 'a', open: true }],
        workflowIdConflictPolicy: 'FAIL',
      });
      // Both are in the first workflow task, which comes before the agent is loaded.
      const set = other.client.workflow.executeUpdateWithStart(setLimitsUpdate, {
        startWorkflowOperation,
        args: [given],
      });
      const answer = set.then(
        ({ turn }) => turn.steps,
        (rejection: Error) => rejection.cause,
      );
      await other.worker([agent], { models: { m: model } });
      if (error === undefined) expect(await answer).toBe(given.steps);
      else expect(await answer).toMatchObject({ message: expect.stringContaining(error) });
    } finally {
      await other.close();
    }
  });

  test('refuses to close a run that is not open', async () => {
    const text = `hold ${randomUUID()}`;
    const gate = createGate();
    gates.set(text, gate);
    const handle = await rig.start({ agent: 'a', message: text });
    await gate.barrier.reached;
    await expect(closeRun(rig.client, handle.workflowId)).rejects.toThrow(
      'a task run ends with its turn',
    );
    const late = askRun(rig.client, handle.workflowId, { message: 'more' });
    await expect(late).rejects.toThrow('send with mode "steer"');
    gate.barrier.release();
  });
});
