import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseCallsInContent } from '../../src/models/calls-in-markup.js';

const tools = [
  { name: 'read_file', parameters: { type: 'object', required: ['path'] } },
  { name: 'today', parameters: { type: 'object', properties: {} } },
];
const call = { name: 'read_file', arguments: { path: 'a' } };
const read = { name: 'read_file', arguments: '{"path":"a"}' };
const today = { name: 'today', arguments: '{}' };

const deep = (levels: number): string =>
  `{"name":"today","arguments":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;

function found(value: unknown): ReturnType<typeof parseCallsInContent> {
  return parseCallsInContent(typeof value === 'string' ? value : JSON.stringify(value), tools);
}

test.each<[string, unknown]>([
  ['a call', call],
  ['a call with parameters', { name: 'read_file', parameters: { path: 'a' } }],
  ['a call with arguments as text', { name: 'read_file', arguments: '{"path":"a"}' }],
  ['a list', [call]],
  ['a list under tools', { tools: [call] }],
  ['a list under tool_calls', { tool_calls: [call] }],
  ['a call as OpenAI writes it', { id: 'x', type: 'function', function: call }],
  ['a list of those', { tool_calls: [{ type: 'function', function: call }] }],
  ['a fence', `\`\`\`json\n${JSON.stringify(call)}\n\`\`\``],
  ['a fence without a language', `\n\`\`\`\n${JSON.stringify(call, null, 2)}\n\`\`\`  `],
  ['a fence with CRLF', `\`\`\`json\r\n${JSON.stringify([call])}\r\n\`\`\``],
])('finds %s', (_name, value) => {
  expect(found(value)).toEqual([read]);
});

test('finds a call whose arguments contain a fence', () => {
  const text = 'Run:\n```sh\nls\n```\n';
  const modelRequest = JSON.stringify({ name: 'read_file', arguments: { path: text } });
  expect(found(`\`\`\`json\n${modelRequest}\n\`\`\``)).toEqual([
    { name: 'read_file', arguments: JSON.stringify({ path: text }) },
  ]);
});

test('finds several calls, in order', () => {
  expect(found([{ name: 'today', arguments: {} }, call, call])).toEqual([today, read, read]);
});

test.each([
  { name: 'today' },
  { name: 'today', arguments: null },
  { name: 'today', arguments: '' },
  { name: 'today', parameters: {} },
])('reads %j as a call of a tool without required arguments', (value) => {
  expect(found(value)).toEqual([today]);
});

test.each<[string, unknown]>([
  ['prose', 'I would call read_file.'],
  ['nothing', ''],
  ['a number', '7'],
  ['broken JSON', '{"name":"read_file","arguments":'],
  ['arguments that are deeper than allowed', deep(70)],
  ['arguments too deep to serialize', deep(20_000)],
  ['a call in a call in a call', '{"function":'.repeat(20_000) + '7' + '}'.repeat(20_000)],
  ['an answer with a name', { name: 'Ada', born: 1815 }],
  ['an answer whose name is that of a tool', { name: 'read_file', description: 'reads' }],
  ['an answer whose name is that of a tool, with arguments', { ...call, note: 'like this' }],
  ['only a name, although arguments are required', { name: 'read_file' }],
  ['an unknown tool', { name: 'rm', arguments: {} }],
  ['a name of every object', { name: 'constructor', arguments: {} }],
  ['arguments that are a list', { name: 'today', arguments: [1] }],
  ['arguments that are prose', { name: 'today', arguments: 'none' }],
  ['a list with something else in it', [call, { name: 'Ada' }]],
  ['a list with an unknown tool in it', [call, { name: 'rm', arguments: {} }]],
  ['an empty list', []],
  ['prose around a call', `I will do this: ${JSON.stringify(call)}`],
  ['a list of tools in an answer', { tools: ['hammer'] }],
  ['prose around a fence', `Like so:\n\`\`\`json\n${JSON.stringify(call)}\n\`\`\``],
  [
    'two fences',
    `\`\`\`json\n${JSON.stringify(call)}\n\`\`\`\n\`\`\`json\n${JSON.stringify(call)}\n\`\`\``,
  ],
  ['a call within a call', { type: 'function', function: { function: { name: 'Ada' } } }],
])('reads %s as an answer', (_name, value) => {
  expect(found(value)).toEqual([]);
});

test('finds nothing without tools', () => {
  expect(parseCallsInContent(JSON.stringify(call), [])).toEqual([]);
});

test('returns only known names and JSON objects, for any text', () => {
  const names = fc.constantFrom('read_file', 'today', 'rm', 'name');
  const value = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .record(
        { name: names, arguments: fc.jsonValue(), parameters: fc.jsonValue() },
        { requiredKeys: [] },
      )
      .map((item) => JSON.stringify(item)),
  );
  fc.assert(
    fc.property(value, (text) => {
      for (const { name, arguments: args } of parseCallsInContent(text, tools)) {
        expect(['read_file', 'today']).toContain(name);
        const parsed: unknown = JSON.parse(args);
        expect(typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)).toBe(true);
      }
    }),
  );
});

test('takes time proportional to the text', () => {
  const long = `\`\`\`\n${'`'.repeat(200_000)}`;
  expect(parseCallsInContent(long, tools)).toEqual([]);
  expect(parseCallsInContent('['.repeat(200_000), tools)).toEqual([]);
});
