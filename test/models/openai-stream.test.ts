import { expect, test } from 'vitest';
import { parseCompletion } from '../../src/models/openai/chat/reply.js';
import { assembleCompletion } from '../../src/models/openai/chat/stream.js';
import { source } from './support.js';

interface Piece {
  readonly index?: number | null;
  readonly id?: string | null;
  readonly name?: string;
  readonly args?: unknown;
}

function wirePiece({ name, args, ...rest }: Piece): object {
  return {
    ...rest,
    function: {
      ...(name !== undefined && { name }),
      ...(args !== undefined && { arguments: args }),
    },
  };
}

function chunk(delta: object, finish: string | null = null): object {
  return { choices: [{ index: 0, delta, finish_reason: finish }] };
}

/** Reads a stream with each of these deltas in its own chunk. */
function callsOf(...pieces: readonly Piece[]) {
  const assembly = assembleCompletion();
  for (const piece of pieces) assembly.add(chunk({ tool_calls: [wirePiece(piece)] }));
  assembly.add(chunk({}, 'tool_calls'));
  return parseCompletion(assembly.answer(), source()).calls;
}

const both = [
  { name: 'f', arguments: '{"a":1}' },
  { name: 'g', arguments: '{"b":2}' },
];

test.each<[string, Piece[]]>([
  [
    'numbered as OpenAI does',
    [
      { index: 0, id: 'x', name: 'f', args: '' },
      { index: 0, args: '{"a"' },
      { index: 1, id: 'y', name: 'g', args: '' },
      { index: 1, args: '{"b":2}' },
      { index: 0, args: ':1}' },
    ],
  ],
  [
    'all numbered 0, with ids',
    [
      { index: 0, id: 'x', name: 'f', args: '{"a":1}' },
      { index: 0, id: 'y', name: 'g', args: '{"b"' },
      { index: 0, id: 'y', args: ':2}' },
    ],
  ],
  [
    'without numbers, with ids',
    [
      { id: 'x', name: 'f', args: '{"a"' },
      { args: ':1}' },
      { id: 'y', name: 'g', args: '{"b":2}' },
    ],
  ],
  [
    'with null numbers and no ids',
    [
      { index: null, id: null, name: 'f', args: '{"a":1}' },
      { index: null, id: null, name: 'g', args: '{"b":' },
      { index: null, id: null, args: '2}' },
    ],
  ],
  [
    'with names repeated in each piece',
    [
      { index: 0, id: 'x', name: 'f', args: '{"a"' },
      { index: 0, id: 'x', name: 'f', args: ':1}' },
      { index: 1, id: 'y', name: 'g', args: '{"b":2}' },
    ],
  ],
  [
    'with empty ids after the first piece',
    [
      { index: 0, id: 'x', name: 'f', args: '{"a"' },
      { index: 0, id: '', args: ':1}' },
      { index: 1, id: 'y', name: 'g', args: '{"b":2}' },
    ],
  ],
  [
    'with a fresh id in each piece',
    [
      { index: 0, id: 'x1', name: 'f', args: '{"a"' },
      { index: 0, id: 'x2', args: ':1}' },
      { index: 1, id: 'y1', name: 'g', args: '{"b":2}' },
    ],
  ],
  [
    'under one number and one id',
    [
      { index: 0, id: 'same', name: 'f', args: '{"a":1}' },
      { index: 0, id: 'same', name: 'g', args: '{"b"' },
      { index: 0, id: 'same', args: ':2}' },
    ],
  ],
  [
    'under another number in the first piece',
    [
      { index: 7, id: 'x', name: 'f', args: '' },
      { index: 0, id: 'x', args: '{"a":1}' },
      { index: 3, id: 'y', name: 'g', args: '' },
      { index: 1, id: 'y', args: '{"b":2}' },
    ],
  ],
  [
    'without numbers and ids, with the name in the last piece again',
    [
      { name: 'f', args: '{"a":1}' },
      { name: 'g', args: '{"b":2' },
      { name: 'g', args: '}' },
    ],
  ],
  [
    'with arguments as objects',
    [
      { index: 0, id: 'x', name: 'f', args: { a: 1 } },
      { index: 1, id: 'y', name: 'g', args: { b: 2 } },
    ],
  ],
  [
    'with the same id for both',
    [
      { index: 0, id: 'same', name: 'f', args: '{"a":1}' },
      { index: 1, id: 'same', name: 'g', args: '{"b":2}' },
    ],
  ],
])('separates two calls that arrive %s', (_name, pieces) => {
  expect(callsOf(...pieces)).toEqual(both);
});

test('separates two calls of one tool, with and without arguments', () => {
  const piece = { index: null, id: null, name: 'f' };
  expect(callsOf({ ...piece, args: '{"a":1}' }, { ...piece, args: '{"a":1}' })).toHaveLength(2);
  expect(callsOf(piece, piece)).toHaveLength(2);
});

test.each([[''], ['null'], [null], [undefined]])(
  'treats %j as the reason of an answer that continues',
  (reason) => {
    const assembly = assembleCompletion();
    assembly.add({ choices: [{ delta: { content: 'a' }, finish_reason: reason }] });
    expect(assembly.isFinished()).toBe(false);
  },
);

test('reads a call without arguments', () => {
  expect(callsOf({ index: 0, id: 'x', name: 'f', args: null })).toEqual([
    { name: 'f', arguments: '{}' },
  ]);
});

function usage(count: number): object {
  return { choices: [], usage: { prompt_tokens: count, completion_tokens: count } };
}

test('uses the last usage, and ignores empty chunks', () => {
  const assembly = assembleCompletion();
  for (const item of [null, 'x', {}, { choices: null }, { choices: [null] }, usage(1)]) {
    assembly.add(item);
  }
  assembly.add(chunk({ content: 'a', role: 'assistant' }));
  assembly.add(chunk({ content: null, tool_calls: null }));
  expect(assembly.isFinished()).toBe(false);
  assembly.add(chunk({ content: 'b' }, 'stop'));
  expect(assembly.isFinished()).toBe(true);
  assembly.add({ ...chunk({}), ...usage(3) });
  assembly.add(usage(4));
  expect(parseCompletion(assembly.answer(), source())).toEqual({
    text: 'ab',
    calls: [],
    finish: 'stop',
    usage: { inputTokens: 4, outputTokens: 4, cachedTokens: 0 },
  });
});
