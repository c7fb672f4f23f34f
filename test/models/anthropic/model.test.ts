import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { sha256Hex } from '../../../src/core/text/json.js';
import type { PromptMessage } from '../../../src/core/transcript/messages.js';
import { anthropicModel } from '../../../src/models/anthropic/model.js';
import { createModelCatalog } from '../../../src/models/model-catalog.js';
import type { ModelEntry } from '../../../src/models/model-entry.js';
import type { Model, ModelReply, ModelRequest } from '../../../src/models/model.js';
import { replyCalls, replyRaw, replyText, type Reply } from '../../../src/testing/replies.js';
import { assistantCalls, callOnce, failureOf, request, stubWith } from '../support.js';

const KEY = 'canary-key-1234';

async function modelWith(...steps: readonly Reply[]) {
  const stub = await stubWith(...steps);
  return { stub, model: anthropicModel({ apiKey: KEY, baseUrl: stub.baseUrl }) };
}

async function callWith(model: Model, rest: Partial<ModelRequest>): Promise<ModelReply> {
  return await model.call(request(rest), { signal: new AbortController().signal });
}

const error = (status: number, type: string, message = 'no'): Reply =>
  replyRaw(JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }), {
    status,
    headers: { 'request-id': 'req_1', 'retry-after': '7' },
  });

test.each([
  [429, 'rate_limit_error', 'no', { kind: 'retry', type: 'rate_limit', retryAfterMs: 7_000 }],
  [529, 'overloaded_error', 'Overloaded', { kind: 'retry', type: 'http_529' }],
  [500, 'api_error', 'Internal server error', { kind: 'retry', type: 'http_500' }],
  [504, 'timeout_error', 'Request timed out', { kind: 'retry', type: 'http_504' }],
  [401, 'authentication_error', 'invalid key', { kind: 'credentials', type: 'unauthorized' }],
  [403, 'permission_error', 'not allowed', { kind: 'credentials', type: 'forbidden' }],
  [404, 'not_found_error', 'model: claude-x', { kind: 'model' }],
  [402, 'billing_error', 'pay', { kind: 'quota' }],
  [400, 'invalid_request_error', 'Your credit balance is too low', { kind: 'quota' }],
  [413, 'request_too_large', 'Request exceeds the maximum size', { kind: 'context_too_long' }],
  [
    400,
    'invalid_request_error',
    'prompt is too long: 210000 tokens > 200000 maximum',
    { kind: 'context_too_long' },
  ],
  [
    400,
    'invalid_request_error',
    'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000',
    { kind: 'context_too_long' },
  ],
  [400, 'invalid_request_error', 'messages.0: oops', { kind: 'bad_request' }],
])('%i %s (%s) is an error of its kind, and is not retried', async (...row) => {
  const [status, type, message, details] = row;
  const { stub, model } = await modelWith(error(status, type, message));
  const failure = await failureOf(callOnce(model));
  expect(failure.details).toMatchObject({ ...details, status, requestId: 'req_1' });
  expect(stub.requestCount).toBe(1);
});

test('the key is only in the header', async () => {
  const { stub, model } = await modelWith(error(401, 'authentication_error', `not ${KEY}`));
  const failure = await failureOf(callOnce(model));
  expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('canary');
  expect(failure.message).toContain('set ANTHROPIC_API_KEY for the worker');
  expect(JSON.stringify(stub.requests[0]?.headers)).toContain(KEY);
});

test('a key that no header can carry is refused without being shown', () => {
  expect(() => anthropicModel({ apiKey: 'canary key', apiKeyEnv: 'MY_KEY' })).toThrow(
    /correct MY_KEY/,
  );
});

test('thoughts are sent back signed, from a blob as well', async () => {
  const calls = [{ name: 'f', arguments: {} }];
  const { stub, model } = await modelWith(
    replyCalls(calls, { reasoning: 'Hm, f.', text: 'I look.' }),
    replyText('done'),
  );
  const tools = [{ name: 'f', description: '', parameters: {} }];
  const first = await callWith(model, { tools });
  const items = JSON.stringify(first.provider?.items);
  const blob = { sha256: sha256Hex(items), bytes: items.length };
  const messages: readonly PromptMessage[] = [
    { role: 'user', text: 'hello' },
    {
      ...assistantCalls({ id: 'call_1', name: 'f', arguments: '{}' }),
      text: first.text,
      provider: { from: first.provider?.from ?? '', blob },
    } as PromptMessage,
    { role: 'tool', callId: 'call_1', text: 'one' },
  ];
  expect(await callWith(model, { tools, messages, files: async () => items })).toMatchObject({
    text: 'done',
  });
  expect(stub.requests[1]?.body).toMatchObject({
    messages: [{}, { content: [{ type: 'thinking', thinking: 'Hm, f.' }, {}, {}] }, {}],
  });
});

test('thoughts that the API refuses are left out in a second request', async () => {
  const { stub, model } = await modelWith(
    replyCalls([{ name: 'f', arguments: {} }], { reasoning: 'Hm.' }),
    replyText('done'),
  );
  const tools = [{ name: 'f', description: '', parameters: {} }];
  const { provider } = await callWith(model, { tools });
  const broken = { ...provider, items: [{ type: 'thinking', thinking: 'Hm.', signature: 'x' }] };
  const messages = [
    { role: 'user', text: 'hello' },
    { ...assistantCalls({ id: 'c', name: 'f', arguments: '{}' }), provider: broken },
    { role: 'tool', callId: 'c', text: 'one' },
  ] as readonly PromptMessage[];
  expect(await callWith(model, { tools, messages })).toMatchObject({
    text: 'done',
    dropped: ['provider_items'],
  });
  expect(stub.requestCount).toBe(3);
});

test.each<[string, Partial<ModelRequest>, string]>([
  [
    "output_config.format.schema: For 'object' type, property 'a' is not supported",
    {
      responseFormat: {
        name: 'a',
        schema: { type: 'object', properties: {}, additionalProperties: false },
      },
    },
    'response_format:json_schema',
  ],
  [
    'tool_choice: forced tool use is not supported for this model',
    { tools: [{ name: 'f', description: '', parameters: {} }], toolChoice: 'required' },
    'tool_choice:required',
  ],
  [
    '"thinking.type.enabled" is not supported for this model.',
    { settings: { thinking: { type: 'enabled', budget_tokens: 2_000 } } },
    'settings.thinking',
  ],
  [
    'reasoning_effort: Extra inputs are not permitted',
    { settings: { reasoning_effort: 'low' } },
    'settings.reasoning_effort',
  ],
])('a model that answers "%s" is called again without it', async (message, rest, parameter) => {
  const { model } = await modelWith(error(400, 'invalid_request_error', message), replyText('ok'));
  expect(await callWith(model, rest)).toMatchObject({ text: 'ok', dropped: [parameter] });
});

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
const pdf = Buffer.from('%PDF-1.7\n%').toString('base64');
const note = Buffer.from('Grüße').toString('base64');

test('sends images, PDFs, and texts, including those of a tool', async () => {
  const texts = new Map([png, pdf, note].map((text) => [sha256Hex(text), text]));
  const blobOf = (text: string) => ({ sha256: sha256Hex(text), bytes: text.length });
  const { stub, model } = await modelWith(replyText('ok'));
  const image = { type: 'image', mediaType: 'image/png', blob: blobOf(png) } as const;
  await callWith(model, {
    files: async ({ sha256 }) => texts.get(sha256) ?? '',
    tools: [{ name: 'f', description: '', parameters: {} }],
    messages: [
      {
        role: 'user',
        text: 'look',
        attachments: [
          image,
          { type: 'image', url: 'https://example.com/a.png' },
          { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', blob: blobOf(pdf) },
          { type: 'file', mediaType: 'text/markdown', name: 'a.md', blob: blobOf(note) },
        ],
      },
      assistantCalls({ id: 'c', name: 'f', arguments: '{}' }),
      { role: 'tool', callId: 'c', text: 'seen', attachments: [image] },
    ],
  });
  const shown = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
  expect(stub.requests[0]?.body['messages']).toMatchObject([
    {
      content: [
        shown,
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { title: 'a.pdf', source: { media_type: 'application/pdf', data: pdf } },
        { title: 'a.md', source: { type: 'text', media_type: 'text/plain', data: 'Grüße' } },
        { type: 'text', text: 'look' },
      ],
    },
    {},
    { content: [{ type: 'tool_result', content: [{ text: 'seen' }, shown] }] },
  ]);
});

test('an attachment of another type is refused before a request', async () => {
  const { stub, model } = await modelWith();
  const blob = { sha256: 'x', bytes: 4 };
  const attachments = [{ type: 'image', mediaType: 'image/tiff', blob } as const];
  const messages = [{ role: 'user', text: '', attachments } as const];
  const failure = await failureOf(callWith(model, { messages, files: async () => note }));
  expect(failure.message).toContain(
    'does not accept attachments of type image/tiff; attach the image as',
  );
  expect(stub.requestCount).toBe(0);
});

test.each<[string, Record<string, ModelEntry>, Record<string, string>, string]>([
  ['claude-sonnet-4-6', {}, { ANTHROPIC_API_KEY: KEY }, 'messages'],
  ['anthropic/claude-sonnet-4-6', {}, { ANTHROPIC_API_KEY: KEY }, 'messages'],
  ['claude-sonnet-4-6', {}, {}, 'messages'],
  ['claude-sonnet-4-6', {}, { OPENAI_BASE_URL: 'stub' }, 'chat'],
  ['claude-sonnet-4-6', {}, { OPENAI_BASE_URL: 'stub', ANTHROPIC_API_KEY: KEY }, 'messages'],
  ['gpt-5', {}, { ANTHROPIC_API_KEY: KEY, OPENAI_BASE_URL: 'stub' }, 'chat'],
  ['mine', { mine: { model: 'claude-sonnet-4-6' } }, { ANTHROPIC_API_KEY: KEY }, 'messages'],
  [
    'mine',
    { mine: { model: 'x', api: 'anthropic', apiKeyEnv: 'MINE' } },
    { MINE: KEY },
    'messages',
  ],
  ['mine', { mine: { model: 'claude-x', baseUrl: 'stub' } }, { ANTHROPIC_API_KEY: KEY }, 'chat'],
])('%s with %j and %j is called by its API', async (name, entries, variables, api) => {
  const stub = await stubWith(replyText('hi'));
  const placed = (text: string): string => (text === 'stub' ? stub.baseUrl : text);
  const environment = {
    ANTHROPIC_BASE_URL: stub.baseUrl.replace('/v1', ''),
    ...Object.fromEntries(Object.entries(variables).map(([key, text]) => [key, placed(text)])),
  };
  const config = Object.fromEntries(
    Object.entries(entries).map(([key, entry]) => [
      key,
      'baseUrl' in entry ? { ...entry, baseUrl: placed(entry.baseUrl) } : entry,
    ]),
  );
  const { model, name: own } = createModelCatalog(config, environment).resolve(name);
  expect(await callWith(model, { model: own })).toMatchObject({ text: 'hi' });
  expect(stub.requests[0]).toMatchObject({ api, body: { model: own } });
  expect(own).not.toContain('anthropic/');
});

test.each([
  ['anthropic/claude-sonnet-4-6', { ANTHROPIC_API_KEY: KEY }],
  ['claude-sonnet-4-6', {}],
])('an entry for %s with its own key has to name its API if there are two (%j)', (model, keys) => {
  const environment = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', TEAM_KEY: KEY, ...keys };
  const entry: ModelEntry = { model, apiKeyEnv: 'TEAM_KEY' };
  expect(() => createModelCatalog({ team: entry }, environment)).toThrow(
    'models.team.api: expected "anthropic", "chat", or "responses", got nothing',
  );
  for (const api of ['anthropic', 'chat'] as const) {
    expect(
      createModelCatalog({ team: { ...entry, api } }, environment).resolve('team'),
    ).toBeDefined();
  }
});

test.each([
  ['a key', { ANTHROPIC_API_KEY: 'no key' }, /correct ANTHROPIC_API_KEY/],
  ['an address', { ANTHROPIC_BASE_URL: 'nowhere' }, /ANTHROPIC_BASE_URL/],
])('%s is refused if it is unusable, when the worker starts', (_, environment, problem) => {
  expect(() => createModelCatalog({}, environment)).toThrow(problem);
});

test('models without an entry share one adapter', () => {
  const catalog = createModelCatalog({}, { ANTHROPIC_API_KEY: KEY });
  expect(catalog.resolve('claude-a').model).toBe(catalog.resolve('claude-b').model);
});

test('without a key, the error names the variable', async () => {
  const { model, price, capabilities } = createModelCatalog({}, {}).resolve(
    'claude-haiku-4-5-20251001',
  );
  expect(price).toEqual({ input: 1, cachedInput: 0.1, cacheWrite: 1.25, output: 5 });
  expect(capabilities).toMatchObject({ responseFormat: 'json_schema', temperature: false });
  const failure = await failureOf(callOnce(model));
  expect(failure.message).toContain('set ANTHROPIC_API_KEY');
  expect(failure.details).toMatchObject({ kind: 'credentials', type: 'no_credentials' });
});
