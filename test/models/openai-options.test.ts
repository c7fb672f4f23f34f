import { expect, test } from 'vitest';
import { OPTIMISTIC, getCapabilities } from '../../src/models/known-models.js';
import { createChatRequest, type ChatRequest } from '../../src/models/openai/chat/request.js';
import { isStrictSchema } from '../../src/models/wire/refusals.js';
import { request } from './support.js';

const tool = { name: 'f', description: '', parameters: { type: 'object' } };
const strict = {
  type: 'object',
  properties: {
    tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/x' }] } },
  },
  required: ['tags'],
  additionalProperties: false,
  $defs: { x: { type: 'object', properties: {}, additionalProperties: false } },
};

test('sends the minimal bytes without options', () => {
  const modelRequest = request({
    tools: [tool],
    settings: { temperature: 0.5, maxOutputTokens: 9, seed: 1 },
  });
  expect(JSON.stringify(createChatRequest(modelRequest, { stream: true }))).toBe(
    '{"temperature":0.5,"seed":1,"max_completion_tokens":9,"model":"stub","messages":' +
      '[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"}],' +
      '"tools":[{"type":"function","function":{"name":"f","description":"","parameters":{"type":"object"}}}],' +
      '"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}',
  );
});

function wired(rest: Parameters<typeof request>[0], model = 'stub'): ChatRequest {
  return createChatRequest(request({ ...rest, model }), { stream: true });
}

test('leaves out what the model is known not to accept', () => {
  const settings = { temperature: 0, top_p: 1, parallel_tool_calls: false, seed: 1 };
  const wire = wired({ settings, logprobs: { top: 3 } }, 'o3');
  expect(wire).not.toHaveProperty('temperature');
  expect(wire).not.toHaveProperty('top_p');
  expect(wire).not.toHaveProperty('parallel_tool_calls');
  expect(wire).not.toHaveProperty('logprobs');
  expect(wire).toMatchObject({ seed: 1 });
});

test('sends the output limit under the name that the server knows', () => {
  expect(wired({ settings: { maxOutputTokens: 5 } }, 'llama3.2:3b')).toMatchObject({
    max_tokens: 5,
  });
});

test('does not request a stream if the model has none', () => {
  const capabilities = { ...OPTIMISTIC, streaming: false };
  expect(createChatRequest(request(), { stream: true, capabilities })).not.toHaveProperty('stream');
});

test('gives instructions to a model without a system role, whatever the first message is', () => {
  const options = { stream: false, capabilities: getCapabilities('o1-mini') };
  const assistant = { role: 'assistant' as const, text: 'hi' };
  expect(createChatRequest(request({ messages: [assistant] }), options).messages).toEqual([
    { role: 'user', content: 'Be brief.' },
    { role: 'assistant', content: 'hi' },
  ]);
  expect(createChatRequest(request({ messages: [] }), options).messages).toEqual([
    { role: 'user', content: 'Be brief.' },
  ]);
});

test('requests logprobs with at most 20 alternatives', () => {
  expect(wired({ logprobs: { top: 5 } })).toMatchObject({ logprobs: true, top_logprobs: 5 });
  expect(wired({ logprobs: { top: 99 } })).toMatchObject({ top_logprobs: 20 });
});

test('sends a schema under an accepted name, strict if strict mode accepts it', () => {
  const format = wired({ responseFormat: { name: 'my answer!', schema: strict } }).response_format;
  expect(format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'my_answer_', schema: strict, strict: true },
  });
  const loose = { type: 'object', properties: { a: { type: 'string' } } };
  expect(wired({ responseFormat: { name: 'a', schema: loose } }).response_format).toEqual({
    type: 'json_schema',
    json_schema: { name: 'a', schema: loose },
  });
});

test('describes the schema in words only if it is not sent', () => {
  const responseFormat = { name: 'a', schema: strict, instruction: 'As JSON.' };
  expect(wired({ responseFormat }).messages[0]?.content).toBe('Be brief.');
  const old = wired({ responseFormat }, 'gpt-3.5-turbo');
  expect(old.response_format).toEqual({ type: 'json_object' });
  expect(old.messages[0]?.content).toBe('Be brief.\n\nAs JSON.');
  const older = wired({ responseFormat, instructions: '' }, 'gpt-4');
  expect(older).not.toHaveProperty('response_format');
  expect(older.messages[0]?.content).toBe('As JSON.');
});

test.each<[string, object, boolean]>([
  ['all required, no other properties', strict, true],
  ['an optional property', { ...strict, required: [] }, false],
  ['other properties', { ...strict, additionalProperties: undefined }, false],
  ['a text at the root', { type: 'string' }, false],
  ['oneOf inside', { ...strict, properties: { tags: { oneOf: [] } } }, false],
  ['an open object inside', { ...strict, $defs: { x: { type: 'object' } } }, false],
  ['a default', { ...strict, properties: { tags: { type: 'string', default: 'x' } } }, false],
])('strict mode and a schema with %s', (_name, schema, expected) => {
  expect(isStrictSchema(schema as Record<string, unknown>)).toBe(expected);
});
