import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible as createV2 } from 'ai-sdk-compatible-v2';
import { createOpenAICompatible as createV4 } from 'ai-sdk-compatible-v4';
import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { type AiSdkLanguageModel, aiSdkModel } from '../../src/models/ai-sdk/model.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import {
  type Reply,
  replyCall,
  replyError,
  replyRaw,
  replyText,
} from '../../src/testing/replies.js';
import type { Stub } from '../../src/testing/stub-server.js';
import { assistantCalls, failureOf, request, stubWith } from './support.js';

const apiKey = 'canary-key-1234';
const providers = {
  v2: ({ baseUrl }) => createV2({ name: 'stub', baseURL: baseUrl, apiKey })('m'),
  chat: ({ baseUrl }) => createOpenAI({ baseURL: baseUrl, apiKey }).chat('m'),
  responses: ({ baseUrl }) => createOpenAI({ baseURL: baseUrl, apiKey }).responses('gpt-5'),
  anthropic: ({ baseUrl }) => createAnthropic({ baseURL: baseUrl, apiKey })('claude-sonnet-4-6'),
  v4: ({ baseUrl }) => createV4({ name: 'stub', baseURL: baseUrl, apiKey })('m'),
  schemas: ({ baseUrl }) =>
    createV4({ name: 'stub', baseURL: baseUrl, apiKey, supportsStructuredOutputs: true })('m'),
} satisfies Record<string, (stub: Stub) => AiSdkLanguageModel>;

type Provider = keyof typeof providers;

const tools = [{ name: 'read_file', description: 'Reads.', parameters: { type: 'object' } }];
const responseFormat = {
  name: 'my answer',
  schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
  instruction: 'Answer as JSON with the field a.',
};

/** Makes one call for each request, and returns the replies with what the server got. */
async function exchange(
  provider: Provider,
  replies: readonly Reply[],
  requests: readonly Partial<ModelRequest>[] = [{}],
): Promise<{
  readonly replies: readonly ModelReply[];
  readonly bodies: Stub['requests'][number]['body'][];
}> {
  const stub = await stubWith(...replies);
  const model = aiSdkModel(providers[provider](stub));
  const got: ModelReply[] = [];
  for (const one of requests) {
    got.push(await model.call(request(one), { signal: new AbortController().signal }));
  }
  return { replies: got, bodies: stub.requests.map(({ body }) => body) };
}

/** A conversation that continues after this reply and the result of its call. */
function after({ text, calls, provider }: ModelReply): readonly PromptMessage[] {
  const own = calls.map((call, index) => ({ ...call, id: `call_1_1_${index}`, digest: '' }));
  return [
    { role: 'user', text: 'hello' },
    { role: 'assistant', text, calls: own, ...(provider && { provider }) },
    ...own.map(({ id }) => ({ role: 'tool', callId: id, text: 'it says b' }) as const),
  ];
}

test('signed thoughts go back to Anthropic, in their places, and cached tokens are counted', async () => {
  const settings = { thinking: { type: 'enabled', budgetTokens: 1_024 } };
  const usage = {
    prompt_tokens: 90,
    completion_tokens: 12,
    prompt_tokens_details: { cached_tokens: 64 },
  };
  const reply = replyCall('read_file', { path: 'a' }, { text: 'I look.', reasoning: 'Hm.', usage });
  const stub = await stubWith(reply, replyText('done'));
  const model = aiSdkModel(providers.anthropic(stub));
  const { signal } = new AbortController();
  const first = await model.call(request({ tools, settings }), { signal });
  expect(first).toMatchObject({
    text: 'I look.',
    calls: [{ name: 'read_file', arguments: '{"path":"a"}' }],
    finish: 'calls',
    usage: { inputTokens: 90, cachedTokens: 64, outputTokens: 12 },
  });
  // What is stored is plain JSON.
  expect(JSON.parse(JSON.stringify(first.provider))).toEqual(first.provider);
  await model.call(request({ tools, settings, messages: after(first) }), { signal });
  const sent = stub.requests[1]?.body['messages'] as readonly { content: unknown }[];
  expect(sent[1]?.content).toMatchObject([
    { type: 'thinking', thinking: 'Hm.', signature: expect.stringMatching(/./) },
    { type: 'text', text: 'I look.' },
    { type: 'tool_use', name: 'read_file', input: { path: 'a' } },
  ]);
  expect(stub.requests[1]?.text).toContain('"cache_control"');
});

test('encrypted reasoning of the Responses API goes back, and no other model gets it', async () => {
  const settings = { store: false, reasoning_effort: 'low' };
  const call = replyCall('read_file', { path: 'a' }, { reasoning: 'Hm, hm.' });
  const stub = await stubWith(call, replyText('done'), replyText('done'));
  const model = aiSdkModel(providers.responses(stub));
  const { signal } = new AbortController();
  const first = await model.call(request({ tools, settings }), { signal });
  const messages = after(first);
  await model.call(request({ tools, settings, messages }), { signal });
  expect(stub.requests[1]?.body).toMatchObject({ store: false, reasoning: { effort: 'low' } });
  const input = stub.requests[1]?.body['input'] as readonly Record<string, unknown>[];
  expect(JSON.stringify(input)).toContain('"encrypted_content"');
  const ids = input.flatMap(({ call_id: id }) => (id === undefined ? [] : [id]));
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(1);
  const other = aiSdkModel(providers.chat(stub));
  await other.call(request({ tools, messages }), { signal });
  expect(stub.requests[2]?.text).not.toContain('encrypted');
});

test.each([
  ['auto', 'auto'],
  ['required', 'required'],
  ['none', 'none'],
] as const)('sends tools with the choice %s', async (choice, sent) => {
  const { bodies } = await exchange('chat', [replyText('x')], [{ tools, toolChoice: choice }]);
  expect(bodies[0]).toMatchObject({
    tools: [{ type: 'function', function: { name: 'read_file', parameters: { type: 'object' } } }],
    tool_choice: sent,
  });
});

test('results of several calls follow them, by the name of their tool', async () => {
  const messages: readonly PromptMessage[] = [
    { role: 'user', text: 'go' },
    assistantCalls(
      { id: 'call_1_1_0', name: 'read_file', arguments: '{"n":12345678901234567890}' },
      { id: 'call_1_1_1', name: 'read_file', arguments: 'no json' },
    ),
    { role: 'tool', callId: 'call_1_1_0', text: '' },
    { role: 'tool', callId: 'call_1_1_1', text: 'b' },
  ];
  const { bodies } = await exchange('v4', [replyText('x')], [{ messages, tools }]);
  expect(bodies[0]?.['messages']).toMatchObject([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      tool_calls: [
        { id: 'call_1_1_0', function: { arguments: '{"n":"12345678901234567890"}' } },
        { id: 'call_1_1_1', function: { arguments: '{"invalid_arguments":"no json"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1_1_0', content: '(no output)' },
    { role: 'tool', tool_call_id: 'call_1_1_1', content: 'b' },
  ]);
});

test.each(['chat', 'responses', 'schemas'] as const)(
  'sends the schema of an answer: %s',
  async (provider) => {
    const { bodies } = await exchange(provider, [replyText('{"a":"b"}')], [{ responseFormat }]);
    const text = JSON.stringify(bodies[0]);
    expect(text).toContain('"json_schema"');
    expect(text).toContain('"my_answer"');
    expect(text).not.toContain(responseFormat.instruction);
  },
);

test('a provider without structured outputs gets the schema in words', async () => {
  const { bodies } = await exchange('v4', [replyText('{"a":"b"}')], [{ responseFormat }]);
  expect(bodies[0]).toMatchObject({ response_format: { type: 'json_object' } });
  expect(JSON.stringify(bodies[0])).toContain(responseFormat.instruction);
});

test('a parameter that the server refuses is left out, also of the next request', async () => {
  const refusal = replyError(400, {
    message: "Unsupported parameter: 'top_p' is not supported with this model.",
    code: 'unsupported_parameter',
  });
  const settings = { top_p: 0.5, seed: 7 };
  const { replies, bodies } = await exchange(
    'chat',
    [refusal, replyText('one'), replyText('two')],
    [{ settings }, { settings }],
  );
  expect(replies.map(({ text, dropped }) => [text, dropped])).toEqual([
    ['one', ['settings.top_p']],
    ['two', ['settings.top_p']],
  ]);
  expect(bodies.map(({ top_p: given, seed }) => [given, seed])).toEqual([
    [0.5, 7],
    [undefined, 7],
    [undefined, 7],
  ]);
});

test('a schema that the server refuses goes in words', async () => {
  const refusal = replyError(400, {
    message: "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
  });
  const replies = [refusal, replyText('{"a":"b"}')];
  const { bodies } = await exchange('schemas', replies, [{ responseFormat }]);
  expect(bodies.map(({ response_format: format }) => format)).toMatchObject([
    { type: 'json_schema' },
    { type: 'json_object' },
  ]);
  expect(JSON.stringify(bodies[1])).toContain(responseFormat.instruction);
});

test.each<[Provider, Reply, object]>([
  [
    'chat',
    replyError(400, { message: 'too long', code: 'context_length_exceeded' }),
    { kind: 'context_too_long' },
  ],
  [
    'anthropic',
    replyError(400, { message: 'prompt is too long: 210000 tokens > 200000 maximum' }),
    { kind: 'context_too_long' },
  ],
  ['v4', replyError(400, { message: 'no' }), { kind: 'bad_request', status: 400 }],
  ['v2', replyError(402, { message: 'Insufficient credits' }), { kind: 'quota' }],
  [
    'responses',
    replyError(429, { message: 'Rate limit', code: 'rate_limit_exceeded' }),
    { kind: 'retry', type: 'rate_limit' },
  ],
  ['v4', replyRaw('{"error":{"message":"overloaded","code":503}}'), { kind: 'retry' }],
  [
    'chat',
    replyRaw('{"choices":"none","usage":{"prompt_tokens":9,"completion_tokens":9}}'),
    { kind: 'malformed' },
  ],
])('classifies an error: %s %#', async (provider, reply, details) => {
  const stub = await stubWith(reply);
  const { signal } = new AbortController();
  const failure = await failureOf(
    aiSdkModel(providers[provider](stub)).call(request(), { signal }),
  );
  expect(failure.details).toMatchObject(details);
  expect(failure.message).not.toContain(apiKey);
  expect(failure.cause).toBeUndefined();
});

test('a refused connection and a missing key are errors with a fix', async () => {
  const stub = await stubWith();
  await stub.close();
  const { signal } = new AbortController();
  const down = await failureOf(aiSdkModel(providers.v4(stub)).call(request(), { signal }));
  expect(down.details).toEqual({ kind: 'retry', type: 'connection_refused' });
  vi.stubEnv('ANTHROPIC_API_KEY', undefined);
  const keyless = aiSdkModel(createAnthropic({ baseURL: stub.baseUrl })('m'));
  const refused = await failureOf(keyless.call(request(), { signal }));
  vi.unstubAllEnvs();
  expect(refused.details.kind).toBe('credentials');
  expect(refused.message).toContain('ANTHROPIC_API_KEY');
});

test.each<[Provider, object]>([
  ['v2', { reasoning_effort: 'low' }],
  ['v4', { reasoning_effort: 'low' }],
  ['chat', { parallel_tool_calls: false, user: 'u1' }],
])('maps settings to options of the AI SDK: %s', async (provider, expected) => {
  const settings = {
    temperature: 0.5,
    maxOutputTokens: 99,
    stop: 'END',
    reasoning_effort: 'low',
    parallel_tool_calls: false,
    user: 'u1',
  };
  const { bodies } = await exchange(provider, [replyText('x')], [{ settings, tools }]);
  expect(bodies[0]).toMatchObject({ max_tokens: 99, stop: ['END'], temperature: 0.5, ...expected });
});

test('options of providers are sent with each call, after the settings of the agent', async () => {
  const stub = await stubWith(replyText('x'));
  const providerOptions = { stub: { user: 'u1', reasoningEffort: 'high' }, other: { a: 1 } };
  const model = aiSdkModel(providers.v2(stub), { providerOptions });
  const settings = { reasoning_effort: 'low' };
  await model.call(request({ settings }), { signal: new AbortController().signal });
  expect(stub.requests[0]?.body).toMatchObject({ user: 'u1', reasoning_effort: 'low' });
});

test.each(['v2', 'chat', 'v4', 'anthropic'] as const)('attaches images: %s', async (provider) => {
  const png = readFileSync(new URL('../../docs/run.png', import.meta.url)).toString('base64');
  const blob = { sha256: 'a'.repeat(64), bytes: png.length };
  const image = { type: 'image', blob, mediaType: 'image/png' } as const;
  const linked = { type: 'image', url: 'https://example.com/a.png' } as const;
  const messages = [{ role: 'user', text: 'see', attachments: [image, linked] }] as const;
  const files = async (): Promise<string> => png;
  const { bodies } = await exchange(provider, [replyText('x')], [{ messages, files }]);
  const text = JSON.stringify(bodies[0]);
  expect(text).toContain(png);
  expect(text).toContain('https://example.com/a.png');
});

test('property names that Anthropic refuses are mapped', async () => {
  const parameters = { type: 'object', properties: { 'größe in mm': { type: 'number' } } };
  const stub = await stubWith(replyText('x'));
  const model = aiSdkModel(providers.anthropic(stub));
  const own = [{ name: 'read_file', description: 'Reads.', parameters }];
  await model.call(request({ tools: own }), { signal: new AbortController().signal });
  const sent = stub.requests[0]?.body['tools'] as readonly {
    input_schema: { properties: object };
  }[];
  expect(Object.keys(sent[0]?.input_schema.properties ?? {})).toEqual([
    expect.stringMatching(/^gr_e_in_mm_[0-9a-f]{8}$/),
  ]);
});

test('anything but a language model, and a wrong option, is named', () => {
  // @ts-expect-error -- a name is no language model
  expect(() => aiSdkModel('openai/gpt-5')).toThrow(
    /model: expected a language model of the AI SDK .*got "openai\/gpt-5"/,
  );
  const model = createOpenAI({ apiKey }).chat('m');
  // @ts-expect-error -- a misspelled option
  expect(() => aiSdkModel(model, { timeoutMs: 5 })).toThrow(/timeoutMs.*timeout/);
  expect(() => aiSdkModel(model, { timeout: '2 hours' })).toThrow(/timeout.*at most 1 hour/);
});
