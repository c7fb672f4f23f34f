import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { LiveSource } from '../../src/live/live-source.js';
import { createRunStreams } from '../../src/live/run-streams.js';
import { replyCall } from '../../src/testing/replies.js';
import { ModelError } from '../../src/models/model.js';
import { clientOf } from '../support/clerk.js';
import { gate } from '../support/gate.js';
import { createListener, listen, type Listener } from '../support/listener.js';
import { createRig, type Rig } from '../support/rig.js';
import { createStreamingAgent } from '../support/streaming-agent.js';

let rig: Rig;
let client: PerdureClient;
const talker = createStreamingAgent();

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  await rig.worker([talker.agent], { models: { talk: talker.model }, live: {} });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

/** Returns whether the listener has received exactly this text of a reply. */
function hasText(listener: Listener, text: string): () => boolean {
  return () => listener.partial === text;
}

describe('a client in the process of a worker without live streams', () => {
  let plain: Rig;
  let near: PerdureClient;

  beforeAll(async () => {
    plain = await createRig();
    // Another home: nothing but the process is shared.
    near = await clientOf(plain, { env: { PERDURE_HOME: `${plain.home}-client` } });
    await plain.worker([talker.agent], { models: { talk: talker.model } });
  });
  afterAll(async () => {
    await near.disconnect();
    await plain.close();
  });

  test('reads the text of each turn as it is written, across a lost attempt', async () => {
    const [seen, seenAgain] = [gate(), gate()];
    talker.on('chat', async ({ emit, number }) => {
      emit(number === 1 ? 'Hello w' : 'Hello wo');
      await (number === 1 ? seen : seenAgain).wait();
      if (number === 1) throw new ModelError('lost', { kind: 'retry', type: 'reset' });
      return number === 2 ? 'Hello world' : 'Hello woods';
    });
    const run = await near.start('talker', { message: 'chat', open: true });
    const texts: string[] = [];
    for await (const text of near.text(run)) {
      texts.push(text);
      if (texts.length === 1) seen.release();
      if (texts.length === 2) seenAgain.release();
    }
    expect(texts).toEqual(['Hello w', 'o', 'rld']);
    const sent = await near.send(run, 'again');
    if (!sent.delivered) throw new Error('the message was not delivered');
    const second: string[] = [];
    for await (const text of near.text(run, { turn: sent.turn })) second.push(text);
    expect(second.join('')).toBe('Hello woods');
    await near.close(run);
  });

  test('runs an agent and gets its outcome in one call', async () => {
    talker.on('once', async () => 'Done.');
    const outcome = await near.run(talker.agent, 'once', { tags: ['t'] });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
    expect(await near.status(outcome.id)).toMatchObject({ status: 'done' });
    // @ts-expect-error -- an open run does not end
    await expect(near.run('talker', 'once', { open: true })).rejects.toThrow('run: open: expected');
  });
});

describe('the stream of a run', () => {
  test('has the deltas of a reply before it is durable, in order with the durable events', async () => {
    const [rest, end] = [gate(), gate()];
    talker.on('early', async ({ emit, request }) => {
      if (request.messages.length > 1) return 'slept';
      emit('I ');
      emit('sleep');
      await rest.wait();
      emit(' first');
      await end.wait();
      return { ...replyCall('wait', { seconds: 1 }), text: 'I sleep first' };
    });
    const run = await client.start('talker', { message: 'early' });
    const listener = createListener();
    for await (const event of client.stream(run)) {
      listener.receive(event);
      if (listener.partial === 'I sleep') rest.release();
      if (listener.partial === 'I sleep first') end.release();
    }
    const types = listener.events.map(({ type }) => type);
    expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
      'run-started',
      'turn-begun',
      'message-added',
      'delta',
      'model-replied',
      'wait-begun',
      'call-finished',
      'model-replied',
      'turn-ended',
      'run-ended',
    ]);
    expect(listener.streamed).toEqual(['I sleep first', '']);
    expect(listener.replies).toEqual(['I sleep first', 'slept']);
  });

  test('sends a late reader the text of the reply so far', async () => {
    const rest = gate();
    talker.on('late', async ({ emit }) => {
      for (const word of ['one ', 'two ', 'three']) emit(word);
      await rest.wait();
      return 'one two three';
    });
    const run = await client.start('talker', { message: 'late' });
    const early = createListener();
    await listen(client.stream(run), early, hasText(early, 'one two three'));
    const late = createListener();
    await listen(client.stream(run), late, hasText(late, 'one two three'));
    const now = createListener();
    await listen(client.stream(run, { after: 'now' }), now, hasText(now, 'one two three'));
    expect(now.events.map(({ type }) => type)).toEqual(['delta']);
    rest.release();
    await client.result(run);
  });

  test('resumes after a position in the middle of a reply, without gaps or duplicates', async () => {
    const [second, third] = [gate(), gate()];
    talker.on('resumed', async ({ emit }) => {
      emit('first ');
      await second.wait();
      emit('second ');
      await third.wait();
      emit('third');
      return 'first second third';
    });
    const run = await client.start('talker', { message: 'resumed' });
    const listener = createListener();
    await listen(client.stream(run), listener, hasText(listener, 'first '));
    const { position: after = '' } = listener.events.at(-1) ?? {};
    second.release();
    // Another reader waits until there is more text than this reader has.
    const other = createListener();
    await listen(client.stream(run), other, hasText(other, 'first second '));
    await listen(client.stream(run, { after }), listener, hasText(listener, 'first second '));
    third.release();
    const again = listener.events.at(-1)?.position ?? '';
    await listen(client.stream(run, { after: again }), listener);
    expect(listener.replies).toEqual(['first second third']);
    expect(listener.events.some(({ type }) => type === 'gap')).toBe(false);
    const last = listener.events.at(-1);
    expect(last?.type).toBe('run-ended');
    const none = await listen(
      client.stream(run, { after: last?.position ?? '' }),
      createListener(),
    );
    expect(none.events).toEqual([]);
  });

  test('retracts the deltas of a failed attempt', async () => {
    const [first, second] = [gate(), gate()];
    talker.on('twice', async ({ emit, number }) => {
      emit(`attempt ${number}`);
      await (number === 1 ? first : second).wait();
      if (number === 1) throw new ModelError('interrupted', { kind: 'retry', type: 'cut' });
      return 'attempt 2';
    });
    const run = await client.start('talker', { message: 'twice' });
    const listener = createListener();
    for await (const event of client.stream(run)) {
      listener.receive(event);
      if (listener.partial === 'attempt 1') first.release();
      if (listener.partial === 'attempt 2') second.release();
    }
    const live = listener.events.filter(({ type }) => type === 'delta' || type === 'superseded');
    expect(live).toMatchObject([
      { type: 'delta', attempt: 1, text: 'attempt 1' },
      { type: 'superseded', turn: 1, step: 1, attempt: 1 },
      { type: 'delta', attempt: 2, text: 'attempt 2' },
    ]);
    expect(listener.streamed).toEqual(listener.replies);
  });

  test('retracts the deltas of a call that failed', async () => {
    const rest = gate();
    talker.on('nothing', async ({ emit }) => {
      emit('I refuse to');
      await rest.wait();
      throw new ModelError('no', { kind: 'request', type: 'no' });
    });
    const run = await client.start('talker', { message: 'nothing' });
    const listener = createListener();
    for await (const event of client.stream(run)) {
      listener.receive(event);
      if (listener.partial !== '') rest.release();
    }
    const types = listener.events.map(({ type }) => type);
    expect(types.slice(-4)).toEqual(['delta', 'superseded', 'turn-ended', 'run-ended']);
    expect(listener.partial).toBe('');
  });

  test('separates call arguments and reasoning from text', async () => {
    const allReceived = gate();
    talker.on('kinds', async ({ request, onDelta }) => {
      if (request.messages.length > 1) return 'done';
      onDelta?.({ kind: 'reasoning', text: 'hm' });
      onDelta?.({ kind: 'call', index: 0, name: 'wait', text: '' });
      onDelta?.({ kind: 'call', index: 0, text: '{"seconds"' });
      onDelta?.({ kind: 'call', index: 0, text: ':1}' });
      await allReceived.wait();
      return replyCall('wait', { seconds: 1 });
    });
    const run = await client.start('talker', { message: 'kinds' });
    const { events } = await listen(client.stream(run), createListener(), (event) => {
      if (event.type === 'delta' && event.text.endsWith(':1}')) allReceived.release();
      return false;
    });
    const deltas = events.filter((event) => event.type === 'delta');
    const text = (kind: string): string =>
      deltas.flatMap((event) => (event.kind === kind ? [event.text] : [])).join('');
    expect(text('reasoning')).toBe('hm');
    expect(text('call')).toBe('{"seconds":1}');
    expect(deltas.find(({ name }) => name !== undefined)).toMatchObject({ name: 'wait', index: 0 });
  });

  test('is followed once for all readers, and no longer once they have left', async () => {
    const rest = gate();
    talker.on('many', async () => {
      await rest.wait();
      return 'many';
    });
    const run = await client.start('talker', { message: 'many' });
    let sources = 0;
    const streams = createRunStreams(rig.client, { sources: [() => void (sources += 1)] });
    const over = new AbortController();
    const begun = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const { batches } = await streams.open(run.id, { signal: over.signal });
        // On a busy machine, the first batch holds later events too.
        expect((await batches.next()).value?.[0]).toMatchObject({ type: 'run-started' });
        return batches;
      }),
    );
    await expect.poll(() => sources).toBeGreaterThan(0);
    expect([streams.size, sources]).toEqual([1, 1]);
    // One leaves by itself, the others by their signal.
    await begun.shift()?.return();
    expect(streams.size).toBe(1);
    over.abort();
    for (const events of begun) for await (const event of events) expect(event).toBeDefined();
    expect(streams.size).toBe(0);
    rest.release();
    await client.result(run);
  });

  test('reads workers while a call runs, and shortly after it, and none while the run is idle', async () => {
    const [begun, rest] = [gate(), gate()];
    talker.on('pause', async ({ number }) => {
      if (number === 1) await begun.wait();
      else await rest.wait();
      return 'done';
    });
    const run = await client.start('talker', { message: 'pause', open: true });
    const reads: AbortSignal[] = [];
    const notices: string[] = [];
    const attempt = { segment: 's', activity: '1', attempt: 1, turn: 1, step: 1 };
    /** The first reading of a run reaches a worker if `reaches`; no reading finds another one. */
    const streamsOf = (name: string, reaches: boolean) => {
      let count = 0;
      const source: LiveSource = (_run, { batch, unreachable, signal }) => {
        reads.push(signal);
        if (reaches && count === 0) batch({ attempt, deltas: [] });
        else unreachable(name);
        count += 1;
      };
      const unreachable = (why: string) => void notices.push(why);
      return createRunStreams(rig.client, { sources: [source], unreachable });
    };
    const [first, second] = [streamsOf('reached', true), streamsOf('never', false)];
    const over = new AbortController();
    const early = await first.open(run.id, { after: 'now', signal: over.signal });
    await vi.waitUntil(() => reads.length === 1, { timeout: 10_000 });
    expect(reads[0]?.aborted).toBe(false);
    begun.release();
    await vi.waitUntil(() => reads[0]?.aborted === true, { timeout: 20_000 });
    // It is idle now: a second reader has the whole stream, and reads no worker.
    const late = await second.open(run.id, { after: 'now', signal: over.signal });
    expect(reads).toHaveLength(1);
    await client.send(run, 'again');
    await vi.waitUntil(() => reads.length === 3, { timeout: 10_000 });
    // A worker that was replaced is none that cannot be reached.
    expect(notices).toEqual(['never']);
    early.close();
    late.close();
    await vi.waitUntil(() => reads.every(({ aborted }) => aborted), { timeout: 10_000 });
    rest.release();
    over.abort();
    await client.close(run);
  });

  test('asks the model to stream only while the run is read, and ends with the signal', async () => {
    const other = await createRig();
    const reader = await clientOf(other);
    talker.on('mute', async ({ onDelta }) => typeof onDelta);
    await other.worker([talker.agent], { models: { talk: talker.model } });
    const run = await reader.start('talker', { message: 'mute', open: true });
    const over = new AbortController();
    const listener = createListener();
    for await (const event of reader.stream(run, { signal: over.signal })) {
      listener.receive(event);
      if (event.type === 'wait-begun') over.abort();
    }
    expect(listener.replies).toEqual(['function']);
    const sent = await reader.send(run, 'again');
    expect(await reader.result(run, { turn: sent.delivered ? sent.turn : 0 })).toMatchObject({
      answer: 'undefined',
    });
    await reader.close(run);
    await reader.disconnect();
    await other.close();
  });

  test('rejects for an invalid position, and for a run that does not exist', async () => {
    const read = (id: string, after = ''): Promise<Listener> =>
      listen(client.stream(id, { after }), createListener());
    await expect(read('no-such-run')).rejects.toThrow('there is no run');
    await expect(read('x', 'nonsense')).rejects.toThrow('from: expected the offset of an event');
    await expect(read('x', 'a:1:0~b')).rejects.toThrow('after: expected the position of an event');
    talker.on('short', async () => 'short');
    const run = await client.start('talker', { message: 'short' });
    await client.result(run);
    const gone = `${crypto.randomUUID()}:1:0`;
    await expect(read(run.id, gone)).rejects.toThrow('the server does not keep this part of run');
  });
});

describe('a run with readers', () => {
  test('has the same history as a run without readers', async () => {
    const other = await createRig();
    await other.worker([talker.agent], { models: { talk: talker.model } });
    talker.on('same', async ({ emit, request }) => {
      emit('some words');
      return request.messages.length > 1 ? 'done' : replyCall('wait', { seconds: 1 });
    });
    const [watched, alone] = await Promise.all(
      [rig, other].map(async (place) => {
        const handle = await place.start(
          { agent: 'talker', message: 'same' },
          `same-${place.taskQueue}`,
        );
        if (place === rig) await listen(client.stream(handle.workflowId), createListener());
        return await place.end(handle);
      }),
    );
    const types = (end: typeof watched): unknown =>
      end?.history.events?.map(({ eventType }) => eventType);
    expect(types(watched)).toEqual(types(alone));
    const messages = (end: typeof watched): unknown =>
      end?.projection.messages.map((message) => ({ ...message, at: 0 }));
    expect(messages(watched)).toEqual(messages(alone));
    await other.close();
  });
});
