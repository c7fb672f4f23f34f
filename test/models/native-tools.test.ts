import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Json, JsonObject } from '../../src/core/text/json.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { replyError, replyText } from '../../src/testing/replies.js';
import { createWorkerParts } from '../../src/worker/parts.js';
import { failureOf, modelOf, request, stubWith } from './support.js';

const { signal } = new AbortController();
const search: JsonObject = { type: 'web_search', search_context_size: 'low' };
const docs: JsonObject = {
  type: 'mcp',
  server_label: 'docs',
  server_url: 'https://docs.example/mcp',
  allowed_tools: ['find'],
  authorizationEnv: 'DOCS_TOKEN',
};
const tools = [{ name: 'f', description: 'Does.', parameters: { type: 'object' } }];
const found: JsonObject = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'perdure' },
};

test("is sent after the agent's tools, with tokens of the environment, and its items are sent back", async () => {
  const stub = await stubWith(replyText('Found.', { items: [found] }), replyText('Yes.'));
  const entry = { api: 'responses', baseUrl: stub.baseUrl } as const;
  const { model } = createModelCatalog({ m: entry }, { DOCS_TOKEN: 'canary-docs-7' }).resolve('m');
  const settings = { nativeTools: [search, docs] };
  const modelRequest = request({ tools, settings });
  const first = await model.call(modelRequest, { signal });
  const { authorizationEnv: _, ...rest } = docs;
  expect(stub.requests[0]?.body['tools']).toEqual([
    { type: 'function', ...tools[0], strict: false },
    search,
    { ...rest, require_approval: 'never', authorization: 'canary-docs-7' },
  ]);
  expect(stub.requests[0]?.body).not.toHaveProperty('nativeTools');
  expect(first).toMatchObject({ text: 'Found.', finish: 'stop' });
  expect(JSON.stringify(first)).not.toContain('canary');
  const assistantMessage: PromptMessage = {
    role: 'assistant',
    text: first.text,
    ...(first.provider && { provider: first.provider }),
  };
  const next: PromptMessage = { role: 'user', text: 'sure?' };
  await model.call(
    { ...modelRequest, messages: [...modelRequest.messages, assistantMessage, next] },
    { signal },
  );
  expect(stub.requests[1]?.body['input']).toMatchObject([
    { role: 'user', content: 'hello' },
    found,
    { id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Found.' }] },
    { role: 'user', content: 'sure?' },
  ]);
});

test("redacts the token in a provider's message", async () => {
  const stub = await stubWith(replyError(400, { message: 'token canary-docs-7 was refused' }));
  const model = modelOf(stub, { api: 'responses', variable: () => 'canary-docs-7' });
  const failure = await failureOf(
    model.call(request({ settings: { nativeTools: [docs] } }), { signal }),
  );
  expect(failure.message).toContain('token [redacted] was refused');
});

test.each([
  ['the other API', { api: 'chat' } as const, 'request', "api: 'responses'"],
  [
    'a model without any',
    { api: 'responses', capabilities: { nativeTools: false } } as const,
    'request',
    'use one that does',
  ],
  ['a missing token', { api: 'responses' } as const, 'credentials', 'DOCS_TOKEN'],
])('is refused with a message with %s', async (_name, options, kind, words) => {
  const stub = await stubWith();
  const modelRequest = request({ settings: { nativeTools: [docs] } });
  const failure = await failureOf(modelOf(stub, options).call(modelRequest, { signal }));
  expect(failure.details.kind).toBe(kind);
  expect(failure.message).toContain(words);
  expect(stub.requestCount).toBe(0);
});

test.each<[Json, string]>([
  [{ type: 'web_search' }, 'expected a list'],
  [[{ type: 'local_shell' }], 'expected a tool that the provider executes'],
  [[{ type: 'computer_use_preview' }], "name of the agent's tool"],
  [[{ type: 'computer', handler: 'screen' }], 'handler "screen" is not a tool of this agent'],
  [
    [
      { type: 'computer', handler: 'a' },
      { type: 'computer', handler: 'a' },
    ],
    'one screen',
  ],
  [[{ type: 'computer_use_preview', handler: 'a', display_width: 0 }], 'expected 1–10000 pixels'],
  [[{ type: 'mcp', headers: { Authorization: 'x' } }], 'authorizationEnv'],
  [[{ type: 'mcp', require_approval: 'always' }], "expected 'never'"],
])('an agent cannot have %j', (nativeTools, words) => {
  const define = () =>
    defineAgent({
      name: 'a',
      instructions: 'x',
      settings: { nativeTools: nativeTools as readonly JsonObject[] },
    });
  expect(define).toThrow('agent "a": settings.nativeTools');
  expect(define).toThrow(words);
});

test.each<[string, string, ModelEntry | undefined]>([
  ['of a server that is only known by its name', 'gpt-4o', undefined],
  ['of the chat API', 'm', { model: 'gpt-4o', baseUrl: 'http://127.0.0.1:1/v1' }],
  [
    'that is too old',
    'm',
    { model: 'gpt-3.5-turbo', api: 'responses', baseUrl: 'http://127.0.0.1:1/v1' },
  ],
  ['of Anthropic', 'claude-sonnet-4-5', undefined],
  ['for demonstrations', 'demo', undefined],
])('a worker refuses an agent that searches the web with a model %s', (_what, model, entry) => {
  const agents = [
    defineAgent({ name: 'a', instructions: 'x', model, settings: { nativeTools: [search] } }),
  ];
  const models = entry === undefined ? {} : { [model]: entry };
  const start = () => createWorkerParts({ agents, models }, { env: {} });
  expect(start).toThrow(
    `agent "a": settings.nativeTools: model "${model}" does not have "web_search"`,
  );
  expect(start).toThrow("api: 'responses'");
});

test('a worker refuses an agent that searches the web if only its first model can', () => {
  const model = ['m', 'claude-sonnet-4-5'] as const;
  const settings = { nativeTools: [search] };
  const agents = [defineAgent({ name: 'a', instructions: 'x', model, settings })];
  const models = { m: { model: 'gpt-4o', api: 'responses' } } as const;
  expect(() => createWorkerParts({ agents, models }, { env: { OPENAI_API_KEY: 'x' } })).toThrow(
    'model "claude-sonnet-4-5" does not have "web_search"',
  );
});

test('a worker accepts an agent that searches the web with a capable model', async () => {
  const agents = [
    defineAgent({ name: 'a', instructions: 'x', model: 'm', settings: { nativeTools: [search] } }),
  ];
  const models = { m: { model: 'gpt-4o', api: 'responses' } } as const;
  const { activities, close } = createWorkerParts({ agents, models }, { env: {} });
  expect(activities).toHaveProperty('callModel');
  await close();
});
