import { expect, test } from 'vitest';
import { type toResponse, responseEncoder } from '../../src/http/response-encoder.js';
import type { StreamEvent } from '../../src/live/stream.js';

const replied = (text: string) => ({ type: 'model-replied', message: { turn: 1, text } });
const delta = (text: string) => ({ type: 'delta', turn: 1, kind: 'text', text });
const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
const ended = (status: string, answer: string | null) => ({
  type: 'turn-ended',
  turn: 1,
  outcome: { status, reason: status, answer, usage },
});

/** Returns the events of the response that these events of a run mean. */
function encode(events: readonly object[]) {
  const place = { run: 'run', turn: 1 };
  const fixed = { place, model: 'm', createdAt: 0, isBackground: true, previous: null };
  const encoder = responseEncoder(fixed);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
  const all = (events as readonly StreamEvent[]).flatMap((event) => encoder.advance(event).events);
  return encoder.asks() ? [...all, ...encoder.wait()] : all;
}

/** Returns the texts of the response that events end with, and the number of its last event. */
function read(events: readonly object[]) {
  const all = encode(events);
  const numbers = all.map(({ sequence_number: number }) => number);
  expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
  expect(new Set(numbers).size).toBe(numbers.length);
  const [last] = all.slice(-1);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the last event has the response
  const { output } = (last as unknown as { response: ReturnType<typeof toResponse> }).response;
  const texts = output.flatMap((item) =>
    'content' in item ? [item.content.map(({ text }) => text).join()] : [],
  );
  return { texts, number: last?.sequence_number };
}

test('a turn that was canceled after a reply without a text has its answer once', () => {
  const events = [replied('Let me look'), replied(''), ended('cancelled', 'Let me look')];
  expect(read(events).texts).toEqual(['Let me look']);
});

test('a reply that is in progress when its turn ends is none of the response', () => {
  for (const [status, answer] of [
    ['cancelled', 'A'],
    ['failed', null],
  ] as const) {
    const live = read([replied('A'), delta('B'), delta('ut'), ended(status, answer)]);
    // A stream that is read again does not have its deltas.
    const again = read([replied('A'), ended(status, answer)]);
    expect([status, live.texts, live.number]).toEqual([status, ['A'], again.number]);
    expect(again.texts).toEqual(['A']);
  }
});

test('an answer that no reply has is an item of its own', () => {
  expect(read([replied('A'), replied(''), ended('completed', 'A')]).texts).toEqual(['A', 'A']);
  expect(read([replied('A'), ended('stopped', 'A and more')]).texts).toEqual(['A', 'A and more']);
});

test('a step without a text is not a message, in the response and in its stream', () => {
  const call = { id: 'call_1_3_1', name: 'weather', arguments: '{}' };
  const asked = { type: 'request-raised', request: 'r1', kind: 'client_tool', call: call.id };
  const calling = { ...replied(''), message: { turn: 1, text: '', calls: [call] } };
  const places = (events: readonly object[]) =>
    encode(events).flatMap((event) =>
      event.type === 'response.output_item.added' ? [JSON.parse(JSON.stringify(event))] : [],
    );
  const message = (index: number, id: string) => ({
    output_index: index,
    item: { type: 'message', id },
  });
  expect(places([replied(''), replied('B'), ended('completed', 'B')])).toMatchObject([
    message(0, 'msg_1_1'),
  ]);
  const paused = [replied('A'), replied(''), calling, asked];
  const called = { output_index: 1, item: { type: 'function_call', name: 'weather' } };
  expect(places(paused)).toMatchObject([message(0, 'msg_1_0'), called]);
  expect(encode(paused).at(-1)).toMatchObject({
    response: { output: [{ type: 'message', id: 'msg_1_0' }, { type: 'function_call' }] },
  });
});

test('an answer that was refused has an item in the stream, with its deltas or without, and none in the response', () => {
  const refused = { type: 'answer-refused', message: { turn: 1, text: 'No' } };
  const last = [refused, replied('Yes'), ended('completed', 'Yes')];
  const indexes = (events: readonly object[]) =>
    encode(events).flatMap((event) =>
      event.type === 'response.output_item.done' && 'output_index' in event
        ? [event.output_index]
        : [],
    );
  for (const events of [last, [delta('No'), ...last]]) {
    expect(indexes(events)).toEqual([0, 1]);
    expect(read(events).texts).toEqual(['Yes']);
  }
});
