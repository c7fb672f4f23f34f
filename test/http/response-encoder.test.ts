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
  const fixed = { place, model: 'm', createdAt: 0, previous: null };
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
  const places = (events: readonly object[]) =>
    encode(events).flatMap((event) =>
      event.type === 'response.output_item.added' ? [JSON.parse(JSON.stringify(event))] : [],
    );
  const message = (index: number, id: string) => ({
    output_index: index,
    item: { type: 'message', id },
  });
  expect(places([replied(''), replied('B'), ended('completed', 'B')])).toMatchObject([
    message(0, 'msg_1_0'),
  ]);
  const paused = [replied('A'), replied(''), CALLING, ASKED];
  const called = { output_index: 1, item: { type: 'function_call', name: 'weather' } };
  expect(places(paused)).toMatchObject([message(0, 'msg_1_0'), called]);
  expect(encode(paused).at(-1)).toMatchObject({
    response: { output: [{ type: 'message', id: 'msg_1_0' }, { type: 'function_call' }] },
  });
});

const REFUSED = { type: 'answer-refused', message: { turn: 1, text: 'No' } };
const SUPERSEDED = { type: 'superseded', turn: 1 };
const CALL = { id: 'call_1_3_1', name: 'weather', arguments: '{}' };
const ASKED = { type: 'request-raised', request: 'r1', kind: 'client_tool', call: CALL.id };
const CALLING = { ...replied(''), message: { turn: 1, text: '', calls: [CALL] } };

/** Returns the items of a stream by their indexes, and those of the response with which it ends. */
function itemsOf(events: readonly object[]) {
  const all: readonly object[] = encode(events);
  const done = all.flatMap((event) =>
    'output_index' in event && 'item' in event && 'type' in event
      ? event.type === 'response.output_item.done'
        ? [[event.output_index, event.item]]
        : []
      : [],
  );
  const indexes = all.flatMap((event) => ('output_index' in event ? [event.output_index] : []));
  const [last] = all.slice(-1);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the last event has the response
  const { output } = (last as { response: ReturnType<typeof toResponse> }).response;
  return { done, indexes: [...new Set(indexes)], output };
}

test.each<[name: string, live: readonly object[], again: readonly object[]]>([
  ['an answer that was refused', [delta('No'), REFUSED, replied('Yes')], [REFUSED, replied('Yes')]],
  [
    'a reply whose text does not count',
    [delta('No'), SUPERSEDED, replied(''), delta('Ye'), replied('Yes')],
    [replied(''), replied('Yes')],
  ],
  [
    'a reply whose text does not count, and one that was refused',
    [delta('No'), SUPERSEDED, replied(''), REFUSED, replied('A'), replied('Yes')],
    [replied(''), REFUSED, replied('A'), replied('Yes')],
  ],
])('a stream has the items of its response, live and read again: %s', (_, live, again) => {
  const items = [live, again].map((events) => itemsOf([...events, ended('completed', 'Yes')]));
  for (const { done, indexes, output } of items) {
    expect(done).toEqual(output.map((item, at) => [at, item]));
    expect(indexes).toEqual([...output.keys()]);
  }
  expect(items[0]).toEqual(items[1]);
  read([...live, ended('completed', 'Yes')]);
});

test.each<[name: string, events: readonly object[], texts: readonly string[]]>([
  ['a call', [delta('No'), SUPERSEDED, CALLING, ASKED], ['']],
  [
    'the end',
    [replied('A'), delta('No'), SUPERSEDED, replied(''), ended('completed', null)],
    ['A', ''],
  ],
  ['its answer', [delta('No'), SUPERSEDED, replied(''), ended('completed', 'Yes')], ['Yes']],
])('a message that was sent is an item of its response if only %s follows', (_, events, texts) => {
  const { done, output } = itemsOf(events);
  expect(done).toEqual(output.map((item, at) => [at, item]));
  expect(read(events).texts).toEqual(texts);
});

test('an answer that was refused is an item without a text, and not one if it has sent none', () => {
  const last = [replied('Yes'), ended('completed', 'Yes')];
  expect(read([REFUSED, ...last]).texts).toEqual(['', 'Yes']);
  const silent = { ...REFUSED, message: { turn: 1, text: '' } };
  expect(read([silent, ...last]).texts).toEqual(['Yes']);
});
