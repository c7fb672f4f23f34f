import { expect, test } from 'vitest';
import { createMessagesRequest } from '../../../src/models/anthropic/request.js';
import type { ModelRequest } from '../../../src/models/model.js';
import type { PromptMessage } from '../../../src/core/transcript/messages.js';
import { assistantCalls, request } from '../support.js';

const CACHED = { cache_control: { type: 'ephemeral' } };
const tools = [{ name: 'f', description: 'Does it.', parameters: { properties: {} } }];

function write(rest: Partial<ModelRequest> = {}) {
  return createMessagesRequest(request({ model: 'claude-sonnet-4-6', ...rest }), { stream: true });
}

test('writes instructions, messages, and the limit of the output', () => {
  expect(write({ settings: { maxOutputTokens: 900 } })).toEqual({
    model: 'claude-sonnet-4-6',
    max_tokens: 900,
    system: [{ type: 'text', text: 'Be brief.', ...CACHED }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hello', ...CACHED }] }],
    stream: true,
  });
  expect(write().max_tokens).toBe(32_000);
  expect(write({ model: 'claude-3-haiku-20240307' }).max_tokens).toBe(4_096);
});

const turn: readonly PromptMessage[] = [
  { role: 'user', text: 'hello' },
  { role: 'user', text: 'and this' },
  assistantCalls(
    { id: 'call_1', name: 'f', arguments: '{"a":1}' },
    { id: 'call_2', name: 'f', arguments: '{"a":' },
  ),
  { role: 'tool', callId: 'call_1', text: 'one' },
  { role: 'tool', callId: 'call_2', text: '' },
];

test('joins adjacent messages of one role, and marks what the next request reads from the cache', () => {
  const { messages } = write({ messages: [...turn, { role: 'user', text: 'steered' }], tools });
  expect(messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'hello' },
        { type: 'text', text: 'and this', ...CACHED },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } },
        { type: 'tool_use', id: 'call_2', name: 'f', input: { invalid_arguments: '{"a":' } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call_1', content: 'one' },
        { type: 'tool_result', tool_use_id: 'call_2' },
        { type: 'text', text: 'steered', ...CACHED },
      ],
    },
  ]);
});

test('a longer request begins with the bytes of a shorter one, apart from the marks', () => {
  const bytes = (messages: readonly PromptMessage[]): string =>
    JSON.stringify(write({ messages, tools }).messages).replaceAll(
      ',"cache_control":{"type":"ephemeral"}',
      '',
    );
  const longer = bytes([...turn, { role: 'assistant', text: 'Done.' }, ...turn.slice(0, 1)]);
  expect(longer.startsWith(bytes(turn).slice(0, -1))).toBe(true);
});

test('sends no empty text', () => {
  const { messages, ...rest } = write({
    instructions: ' ',
    messages: [
      { role: 'user', text: '' },
      { role: 'assistant', text: ' \n' },
      { role: 'user', text: 'hm' },
    ],
  });
  expect(rest).not.toHaveProperty('system');
  expect(messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: '(empty message)' },
        { type: 'text', text: 'hm', ...CACHED },
      ],
    },
  ]);
});

const THINKING = { thinking: { type: 'enabled', budget_tokens: 2_000 } };

test('demands a call in the instructions while the model thinks, since the API takes no `any` then', () => {
  const systemOf = (rest: Partial<ModelRequest>) =>
    JSON.stringify(
      write({ tools, instructions: 'Be brief.', toolChoice: 'required', ...rest }).system,
    );
  expect(systemOf({})).not.toContain('must call');
  expect(systemOf({ settings: THINKING })).toContain('must call');
  const demandCall = 'Use a tool now.';
  expect(systemOf({ settings: THINKING, demandCall })).toContain(demandCall);
  expect(systemOf({ demandCall })).not.toContain(demandCall);
});

test.each<[string, Partial<ModelRequest>, object | undefined]>([
  ['auto', { tools }, { type: 'auto' }],
  ['required', { tools, toolChoice: 'required' }, { type: 'any' }],
  ['none', { tools, toolChoice: 'none' }, { type: 'none' }],
  [
    'auto if a model that thinks must call',
    { tools, toolChoice: 'required', settings: THINKING },
    { type: 'auto' },
  ],
  [
    'auto if the model refuses to be forced',
    { tools, toolChoice: 'required', model: 'claude-sonnet-5-5' },
    { type: 'auto' },
  ],
  [
    'one call at a time',
    { tools, settings: { parallel_tool_calls: false } },
    { type: 'auto', disable_parallel_tool_use: true },
  ],
  ['nothing without tools', {}, undefined],
])('chooses tools: %s', (_what, rest, choice) => {
  const body = write(rest);
  expect(body.tool_choice).toEqual(choice);
  expect(body).not.toHaveProperty('parallel_tool_calls');
  if (choice !== undefined) {
    expect(body.tools).toEqual([
      { name: 'f', description: 'Does it.', input_schema: { properties: {}, type: 'object' } },
    ]);
  }
});

test('names the tools of earlier calls if the request has no tools', () => {
  expect(write({ messages: turn })).toMatchObject({
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    tool_choice: { type: 'none' },
  });
});

const strict = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
} as const;
const recursive = {
  ...strict,
  properties: { a: { type: 'array', items: { $ref: '#/$defs/b' } } },
  $defs: { b: { ...strict, properties: { a: { $ref: '#/$defs/b' } } } },
};

test('sends a schema that the API enforces, together with the effort', () => {
  const responseFormat = { name: 'answer', schema: strict, instruction: 'As JSON.' };
  const settings = { output_config: { effort: 'low' } };
  const body = write({ responseFormat, settings });
  expect(body.output_config).toEqual({
    effort: 'low',
    format: { type: 'json_schema', schema: strict },
  });
  expect(body.system?.[0]?.text).toBe('Be brief.');
});

test('says bounds, which the API does not enforce, in the description', () => {
  const properties = {
    stars: { type: 'integer', minimum: 1, maximum: 5, description: 'How good.' },
    count: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: 9007199254740991 },
    words: { type: 'array', items: { type: 'number', multipleOf: 2 }, minItems: 2 },
    one: { anyOf: [{ type: 'string', pattern: '^x' }, { type: 'null' }] },
  };
  const schema = { ...strict, properties, required: Object.keys(properties) };
  const body = write({ responseFormat: { name: 'answer', schema } });
  expect(body.output_config?.format?.schema['properties']).toEqual({
    stars: { type: 'integer', description: 'How good. (minimum: 1, maximum: 5)' },
    count: { type: 'integer' },
    words: {
      type: 'array',
      items: { type: 'number', description: '(multipleOf: 2)' },
      description: '(minItems: 2)',
    },
    one: { anyOf: [{ type: 'string', description: '(pattern: "^x")' }, { type: 'null' }] },
  });
});

test.each([
  ['a schema with optional fields', 'claude-sonnet-4-6', { ...strict, required: [] }],
  ['a schema that refers to itself', 'claude-sonnet-4-6', recursive],
  ['a schema for an older model', 'claude-opus-4-1-20250805', strict],
])('describes %s in words', (_what, model, schema) => {
  const responseFormat = { name: 'answer', schema, instruction: 'As JSON.' };
  const body = write({ model, responseFormat });
  expect(body).not.toHaveProperty('output_config');
  expect(body.system?.[0]?.text).toBe('Be brief.\n\nAs JSON.');
});

test('sends settings verbatim, without those that the API does not support', () => {
  const settings = { temperature: 0.3, top_p: 1, stop_sequences: ['END'], service_tier: 'auto' };
  const body = write({ settings });
  expect(body).toMatchObject({ stop_sequences: ['END'], service_tier: 'auto' });
  expect(body).not.toHaveProperty('temperature');
  expect(body).not.toHaveProperty('top_p');
});

const thought = { type: 'thinking', thinking: 'Hm.', signature: 'sig' };
const second = { type: 'redacted_thinking', data: 'xyz' };

function thinking(items: readonly object[], text = 'I look.'): PromptMessage {
  const calls = [{ id: 'call_1', name: 'f', arguments: '{}', digest: '' }];
  const provider = { from: 'maker', items } as unknown as { from: string };
  return { role: 'assistant', text, calls, provider };
}

test.each<[string, readonly object[], readonly string[]]>([
  ['in their places', [thought, { characters: 7 }, { call: 0 }], ['thinking', 'text', 'tool_use']],
  [
    'between text and call',
    [thought, { characters: 7 }, second, { call: 0 }],
    ['thinking', 'text', 'redacted_thinking', 'tool_use'],
  ],
  [
    'with a text that has changed',
    [thought, { characters: 3 }, { call: 0 }],
    ['thinking', 'text', 'tool_use', 'text'],
  ],
  [
    'without those at the end',
    [thought, { characters: 7 }, { call: 0 }, second],
    ['thinking', 'text', 'tool_use'],
  ],
])('thoughts are sent back to their model, %s', (_what, items, types) => {
  const messages = [turn[0]!, thinking(items), turn[3]!];
  const replay = { from: 'maker', stored: new Map() };
  const options = { stream: false, replay };
  const body = createMessagesRequest(request({ messages, tools, settings: THINKING }), options);
  expect(body.messages[1]?.content.map(({ type }) => type)).toEqual(types);
  expect(body.messages[1]?.content[0]).toEqual(thought);
  expect(body).toMatchObject(THINKING);
});

test('thoughts of another model are not sent, and such a turn continues without thinking', () => {
  const messages = [turn[0]!, thinking([thought]), turn[3]!];
  const options = { stream: false, replay: { from: 'other', stored: new Map() } };
  const body = createMessagesRequest(request({ messages, tools, settings: THINKING }), options);
  expect(body.messages[1]?.content.map(({ type }) => type)).toEqual(['text', 'tool_use']);
  expect(body).not.toHaveProperty('thinking');
  const next = { ...request({ tools, settings: THINKING }), messages: [...messages, turn[0]!] };
  expect(createMessagesRequest(next, options)).toMatchObject(THINKING);
});
