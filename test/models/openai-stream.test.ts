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

const first = { index: 0, id: 'x', name: 'f' };

test.each<[string, Piece[]]>([
  [
    'whole again',
    [
      { ...first, args: '{"a"' },
      { index: 0, args: ':1}' },
      { index: 0, args: '{"a":1}' },
    ],
  ],
  [
    'whole again, with the name',
    [
      { ...first, args: '{"a":1}' },
      { ...first, args: '{"a":1}' },
    ],
  ],
  [
    'after an empty object',
    [
      { ...first, args: '{}' },
      { index: 0, args: '{"a":1}' },
    ],
  ],
  [
    'after an empty object, with the name',
    [
      { ...first, args: '{}' },
      { ...first, args: '{"a":1}' },
    ],
  ],
  [
    'after an empty object, in parts',
    [
      { ...first, args: '{}' },
      { index: 0, args: '{"a"' },
      { index: 0, args: ':1}' },
    ],
  ],
  [
    'after an empty object, without number and id',
    [
      { name: 'f', args: '{}' },
      { name: 'f', args: '{"a":1}' },
    ],
  ],
  [
    'as growing texts',
    [
      { ...first, args: '{"a"' },
      { index: 0, args: '{"a":1' },
      { index: 0, args: '{"a":1}' },
    ],
  ],
  [
    'as growing objects',
    [
      { ...first, args: {} },
      { index: 0, args: { a: 1 } },
    ],
  ],
  [
    'as growing objects, with the name',
    [
      { ...first, args: {} },
      { ...first, args: { a: null } },
      { ...first, args: { a: 1 } },
    ],
  ],
  [
    'with a name in pieces',
    [
      { index: 0, id: 'x', name: 'lo' },
      { index: 0, name: 'ok' },
      { index: 0, args: '{"a":1}' },
    ],
  ],
  [
    'with a growing name',
    [
      { index: 0, id: 'x', name: 'lo' },
      { index: 0, id: 'x', name: 'look' },
      { index: 0, args: '{"a":1}' },
    ],
  ],
  [
    'with a name before the arguments, without number and id',
    [{ name: 'f' }, { name: 'f', args: '{"a"' }, { args: ':1}' }],
  ],
  [
    'with an object in an object',
    [
      { ...first, args: '{"a":1' },
      { index: 0, args: '}' },
    ],
  ],
])('reads one call whose arguments arrive %s', (_name, pieces) => {
  expect(callsOf(...pieces)).toEqual([
    { name: pieces.some(({ name }) => name === 'lo') ? 'look' : 'f', arguments: '{"a":1}' },
  ]);
});

test('keeps arguments that begin with a copy of themselves', () => {
  const pieces = [
    { ...first, args: '{"a":' },
    { index: 0, args: '{"a":1}}' },
  ];
  expect(callsOf(...pieces)).toEqual([{ name: 'f', arguments: '{"a":{"a":1}}' }]);
});

test.each([
  ['different objects', ['{"a":1}', '{"b":2}']],
  ['half an object after a whole one', ['{"a":1}', '{"a":']],
  ['half an object', ['{"a":']],
])('never reads %s as arguments', (_name, [one = '', two = '']) => {
  const [call] = callsOf({ ...first, args: one }, { index: 0, args: two });
  expect(() => JSON.parse(call?.arguments ?? '') as unknown).toThrow(SyntaxError);
});

test.each([[null], [undefined], ['null'], ['']])('reads %j as no arguments', (args) => {
  expect(callsOf({ ...first, args })).toEqual([{ name: 'f', arguments: '{}' }]);
});

test('shows the arguments that count, once', () => {
  const shown: string[] = [];
  const assembly = assembleCompletion(({ kind, text }) => kind === 'call' && shown.push(text));
  for (const args of ['{}', '{"a"', ':1}', '{"a":1}']) {
    assembly.add(chunk({ tool_calls: [wirePiece({ ...first, args })] }));
  }
  assembly.add(chunk({}, 'tool_calls'));
  expect(parseCompletion(assembly.answer(), source()).calls[0]?.arguments).toBe('{"a":1}');
  expect(shown.join('')).toBe('{"a":1}');
});

test('reads the calls of every choice, and the first text', () => {
  const assembly = assembleCompletion();
  const choice = (index: number, delta: object, finish: string | null = null): object => ({
    choices: [{ index, delta, finish_reason: finish }],
  });
  assembly.add(choice(0, { content: 'I look.' }));
  assembly.add(choice(1, { tool_calls: [wirePiece({ ...first, args: '{"a"' })] }));
  assembly.add(
    choice(2, { tool_calls: [wirePiece({ index: 0, id: 'y', name: 'g', args: '{"b":2}' })] }),
  );
  assembly.add(choice(0, {}, 'tool_calls'));
  assembly.add(choice(2, {}, 'tool_calls'));
  expect(assembly.isFinished()).toBe(false);
  assembly.add(choice(1, { tool_calls: [wirePiece({ index: 0, args: ':1}' })] }, 'tool_calls'));
  expect(assembly.isFinished()).toBe(true);
  const { text, calls, finish } = parseCompletion(assembly.answer(), source());
  expect({ text, calls, finish }).toEqual({ text: 'I look.', calls: both, finish: 'calls' });
});

test('reads a legacy function call', () => {
  const assembly = assembleCompletion();
  assembly.add(chunk({ function_call: { name: 'f', arguments: '' } }));
  assembly.add(chunk({ function_call: { arguments: '{"a":1}' } }));
  assembly.add(chunk({}, 'function_call'));
  const { calls, finish } = parseCompletion(assembly.answer(), source());
  expect({ calls, finish }).toEqual({ calls: both.slice(0, 1), finish: 'calls' });
});
