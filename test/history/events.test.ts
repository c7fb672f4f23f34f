import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { DurableEvent } from '../../src/history/durable-steps.js';
import {
  followSteps,
  stepsAfter,
  type EventSteps,
  readOffset,
} from '../../src/history/follow-events.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel, untilStatus } from '../support/conversation.js';
import { ModelError } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;
/** Bytes after which segments end; the exact place is not predictable. */
let byBytes: { readonly rig: Rig; readonly client: PerdureClient };
const start = { agent: 'clerk' };
const waiter = defineAgent({ name: 'waiter', instructions: 'wait', model: 'w', tools: [wait()] });
const waits = {
  call: async ({ messages }: { messages: readonly { role: string }[] }) =>
    messages.some(({ role }) => role === 'tool')
      ? replyText('waited')
      : replyCall('wait', { seconds: 1 }),
};

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await clientOf(rig);
  const models = { m: obedientModel(), w: waits };
  await rig.worker([clerk(), waiter], { models, segment: { steps: 2, bytes: 2_000_000 } });
  const other = await createMemoryRig();
  byBytes = { rig: other, client: await clientOf(other) };
  await other.worker([clerk()], { models, segment: { steps: 100, bytes: 5_000 } });
});
afterAll(async () => {
  await byBytes.client.disconnect();
  await byBytes.rig.close();
  await client.disconnect();
  await rig.close();
});

const newId = (): string => `events-${randomUUID()}`;

async function all(id: string, from?: string, by = client): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = [];
  for await (const event of by.events(id, from === undefined ? {} : { from })) {
    events.push(event);
  }
  return events;
}

/** Plays an open run with queued messages, several turns, and several segments, to its end. */
async function longRun(by: PerdureClient): Promise<string> {
  const id = newId();
  const own = by === client ? rig : byBytes.rig;
  await by.send(id, { message: 'steps 3', id: 'a' }, { start });
  for (const message of ['two', 'steps 2']) await by.send(id, message);
  await by.result(id, { turn: 3 });
  // Otherwise a message may come so early that the run never waits for one.
  await untilStatus(own.client.workflow.getHandle(id), 'waiting_message');
  await by.pause(id);
  await by.send(id, 'four');
  await by.resume(id);
  await by.result(id, { turn: 4 });
  await untilStatus(own.client.workflow.getHandle(id), 'waiting_message');
  await by.close(id);
  await by.result(id);
  return id;
}

/** A run whose segments end by steps, played once. */
let bySteps: Promise<string> | undefined;
const runBySteps = (): Promise<string> => (bySteps ??= longRun(client));

/**
 * Indices of the first and the last event of each kind: by its place among those of one event of the
 * history, and by whether the next one is of the same event, the same segment, another one, or none.
 */
function kindsIn(events: readonly DurableEvent[]): readonly number[] {
  const kinds = events.map(({ offset }, index) => {
    const [run, event, place] = offset.split(':');
    const [nextRun, nextEvent] = events[index + 1]?.offset.split(':') ?? [];
    return [place, run === nextRun, event === nextEvent, nextRun === undefined].join(' ');
  });
  const isEdge = (kind: string, index: number): boolean =>
    kinds.indexOf(kind) === index || kinds.lastIndexOf(kind) === index;
  return kinds.flatMap((kind, index) => (isEdge(kind, index) ? [index] : []));
}

describe('the events of a run', () => {
  test.each(['steps', 'bytes'])(
    'include each message, turn, and call once, through all segments, by %s',
    async (by) => {
      const reader = by === 'steps' ? client : byBytes.client;
      const id = by === 'steps' ? await runBySteps() : await longRun(reader);
      const events = await all(id, undefined, reader);
      const types = events.map(({ type }) => type);
      const messagesOfEvents = events.flatMap((event) =>
        'message' in event && typeof event.message === 'object' ? [event.message] : [],
      );
      const { messages } = await reader.transcript(id);
      // The time of a message is that of its event, or the workflow's own if the message was carried over.
      const timeless = messagesOfEvents.map((message) => ({ ...message, at: expect.any(Number) }));
      expect(messages).toEqual(timeless);
      expect(messagesOfEvents.map(({ n }) => n)).toEqual(messagesOfEvents.map((_, n) => n));
      const turns = events.flatMap((event) => (event.type === 'turn-begun' ? [event.turn] : []));
      expect(turns).toEqual([1, 2, 3, 4]);
      const ended = events.flatMap((event) =>
        event.type === 'turn-ended' ? [[event.turn, event.outcome.answer]] : [],
      );
      expect(ended).toEqual([
        [1, 'done: steps 3'],
        [2, 'done: two'],
        [3, 'done: steps 2'],
        [4, 'done: four'],
      ]);
      expect(types.filter((type) => type === 'call-begun')).toHaveLength(5);
      expect(types.filter((type) => type === 'call-finished')).toHaveLength(5);
      const segments = events.flatMap((event) =>
        event.type === 'segment-begun' ? [event.segment] : [],
      );
      expect(segments.length).toBeGreaterThan(2);
      expect(segments).toEqual(segments.map((_, index) => index + 2));
      expect(types.filter((type) => type === 'wait-begun')).toHaveLength(2);
      expect(types.filter((type) => type === 'run-paused')).toHaveLength(1);
      expect(types.filter((type) => type === 'run-resumed')).toHaveLength(1);
      expect(events[0]).toMatchObject({ type: 'run-started', agent: 'clerk', open: true });
      expect(events.at(-1)).toMatchObject({ type: 'run-ended', reason: 'closed' });
      // All messages of a turn are between its start and its end.
      let turn = 0;
      for (const event of events) {
        if (event.type === 'turn-begun') ({ turn } = event);
        if (event.type === 'model-replied') expect(event.message.turn).toBe(turn);
      }
    },
  );

  test('resume after an offset of each kind with exactly the later ones', async () => {
    const id = await runBySteps();
    const events = await all(id);
    expect(events.length).toBeGreaterThan(30);
    expect(new Set(events.map(({ offset }) => offset)).size).toBe(events.length);
    for (const index of kindsIn(events)) {
      expect(await all(id, events[index]?.offset)).toEqual(events.slice(index + 1));
    }
  });

  test('after every offset are exactly the later ones', async () => {
    const id = await runBySteps();
    const events = await all(id);
    const [first] = events.map(({ offset }) => readOffset(offset).runId);
    const { signal } = new AbortController();
    // Read once, because each reader costs a few requests to the server.
    const read: EventSteps[] = [];
    for await (const steps of followSteps(rig.client, { id, runId: first ?? '', signal }))
      read.push(steps);
    for (const [index, { offset }] of events.entries()) {
      const after = readOffset(offset);
      const from = read.findIndex(({ runId }) => runId === after.runId);
      const later = read.slice(from).flatMap((steps) => stepsAfter(steps, after));
      expect(later).toEqual(events.slice(index + 1));
    }
  });

  test('arrive while the run continues, even for a reader that reconnects', async () => {
    const id = newId();
    await client.send(id, 'steps 2', { start });
    const seen: DurableEvent[] = [];
    const readUntil = async (done: (event: DurableEvent) => boolean): Promise<void> => {
      const from = seen.at(-1)?.offset;
      for await (const event of client.events(id, from === undefined ? {} : { from })) {
        seen.push(event);
        if (done(event)) return;
      }
    };
    await readUntil(({ type }) => type === 'call-finished');
    await readUntil(({ type }) => type === 'wait-begun');
    expect(seen.at(-1)).toMatchObject({ type: 'wait-begun', for: 'message' });
    const reading = readUntil((event) => event.type === 'turn-ended' && event.turn === 2);
    await client.send(id, 'two');
    await reading;
    await client.close(id);
    await readUntil(() => false);
    expect(seen).toEqual(await all(id));
  });

  test('include a wait with its end, and need no worker', async () => {
    const other = await createMemoryRig();
    const reader = await clientOf(other);
    const worker = await other.worker([waiter], { models: { w: waits } });
    const run = await reader.start('waiter', { message: 'go' });
    const seen: DurableEvent[] = [];
    for await (const event of reader.events(run)) {
      seen.push(event);
      if (event.type === 'wait-begun') break;
    }
    const begun = seen.at(-1);
    expect(begun).toMatchObject({ type: 'wait-begun', for: 'time' });
    expect(begun?.type === 'wait-begun' && begun.for === 'time' && begun.until).toBeGreaterThan(
      begun?.at ?? Infinity,
    );
    await reader.result(run);
    await worker.shutdown();
    const types: string[] = [];
    for await (const { type } of reader.events(run)) types.push(type);
    expect(types).toEqual([
      'run-started',
      'turn-begun',
      'message-added',
      'model-replied',
      'wait-begun',
      'call-finished',
      'model-replied',
      'turn-ended',
      'run-ended',
    ]);
    await reader.disconnect();
    await other.close();
  });

  test('show that work is unblocked when its turn is interrupted', async () => {
    const other = await createMemoryRig();
    const reader = await clientOf(other);
    const call = async () => {
      throw new ModelError('no key', { kind: 'credentials', type: 'invalid_api_key', status: 401 });
    };
    await other.worker([clerk()], { models: { m: { call } } });
    const run = await reader.start('clerk', { message: 'go', open: true });
    const types: string[] = [];
    for await (const event of reader.events(run)) {
      types.push(event.type);
      if (event.type === 'work-blocked') await reader.cancel(run, { turn: true });
      if (event.type === 'turn-ended') break;
    }
    expect(types.slice(-3)).toEqual(['work-blocked', 'work-unblocked', 'turn-ended']);
    expect(await reader.status(run)).toMatchObject({
      status: 'waiting_message',
      reason: 'cancelled',
      message: null,
    });
    await reader.disconnect();
    await other.close();
  });

  test('show work that is blocked and unblocked', async () => {
    const other = await createMemoryRig();
    const reader = await clientOf(other);
    let isMended = false;
    const call = async () => {
      if (isMended) return replyText('mended');
      throw new ModelError('no key', { kind: 'credentials', type: 'invalid_api_key', status: 401 });
    };
    await other.worker([clerk()], { models: { m: { call } } });
    const run = await reader.start('clerk', { message: 'go' });
    const types: string[] = [];
    for await (const event of reader.events(run)) {
      types.push(event.type);
      if (event.type !== 'work-blocked') continue;
      expect(event).toMatchObject({ on: 'model', reason: 'credentials' });
      isMended = true;
      await reader.resume(run);
    }
    expect(types).toEqual([
      'run-started',
      'turn-begun',
      'message-added',
      'work-blocked',
      'work-unblocked',
      'model-replied',
      'turn-ended',
      'run-ended',
    ]);
    await reader.disconnect();
    await other.close();
  });

  test('end with the signal, without an error', async () => {
    const run = await client.start('clerk', { open: true, id: newId() });
    const gone = new AbortController();
    const types: string[] = [];
    for await (const { type } of client.events(run, { signal: gone.signal })) {
      types.push(type);
      if (type === 'wait-begun') gone.abort();
    }
    expect(types).toEqual(['run-started', 'wait-begun']);
    await client.close(run);
  });

  test('reject an invalid offset, and one of another run', async () => {
    const run = await client.start('clerk', { message: 'one' });
    await client.result(run);
    const [first] = await all(run.id);
    await expect(all(run.id, 'x')).rejects.toThrow(
      'from: expected the offset of an event, got "x"',
    );
    const other = await client.start('clerk', { message: 'one' });
    await expect(all(other.id, first?.offset)).rejects.toThrow(
      'the server does not keep this part of run',
    );
    await expect(all(newId())).rejects.toThrow('there is no run');
  });
});
