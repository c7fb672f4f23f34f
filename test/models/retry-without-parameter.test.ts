import { expect, test } from 'vitest';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import type { OpenAiModelOptions } from '../../src/models/openai/model.js';
import { replyError, replyText, type Reply } from '../../src/testing/replies.js';
import type { Stub } from '../../src/testing/stub-server.js';
import { createKnownRefusals } from '../../src/models/wire/refusals.js';
import { failureOf, modelOf, request, stubWith } from './support.js';

function refusing(
  param: string,
  message = `Unsupported parameter: '${param}' is not supported.`,
): Reply {
  return replyError(400, { message, param, code: 'unsupported_parameter' });
}

function ask(
  stub: Stub,
  modelRequest: ModelRequest,
  options: OpenAiModelOptions = {},
): Promise<ModelReply> {
  return modelOf(stub, options).call(modelRequest, { signal: new AbortController().signal });
}

const tool = { name: 'f', description: '', parameters: { type: 'object' } };

test('repeats the call without the refused parameter, and reports it', async () => {
  const stub = await stubWith(refusing('temperature'), replyText('hi'));
  const answer = await ask(stub, request({ settings: { temperature: 0, seed: 1 } }));
  expect(answer).toMatchObject({ text: 'hi', dropped: ['settings.temperature'] });
  const [first, second] = stub.requests.map(({ body }) => body);
  const { temperature, ...rest } = first ?? {};
  expect(temperature).toBe(0);
  expect(second).toEqual(rest);
});

test('leaves out what was refused before, and does not report it again', async () => {
  const stub = await stubWith(replyText('hi'));
  const modelRequest = request({ settings: { temperature: 0 }, without: ['settings.temperature'] });
  expect(await ask(stub, modelRequest)).not.toHaveProperty('dropped');
  expect(stub.requests[0]?.body).not.toHaveProperty('temperature');
});

test('drops one parameter after the other, each once', async () => {
  const stub = await stubWith(refusing('temperature'), refusing('seed'), replyText('hi'));
  const modelRequest = request({
    settings: { temperature: 0, seed: 1 },
    without: ['settings.stop'],
  });
  expect((await ask(stub, modelRequest)).dropped).toEqual([
    'settings.temperature',
    'settings.seed',
  ]);
  expect(stub.requestCount).toBe(3);
});

test('fails if the server refuses the same parameter again', async () => {
  const stub = await stubWith(refusing('seed'), refusing('seed'));
  const error = await failureOf(ask(stub, request({ settings: { seed: 1 } })));
  expect(error.details).toMatchObject({ kind: 'bad_request', type: 'unsupported_parameter' });
  expect(stub.requestCount).toBe(2);
});

test('sends one request if the error has another reason', async () => {
  const wrong = { message: "Invalid 'temperature': 9 is above 2", param: 'temperature' };
  const stub = await stubWith(replyError(400, wrong), replyText('hi'));
  const error = await failureOf(ask(stub, request({ settings: { temperature: 9 } })));
  expect(error.details.kind).toBe('bad_request');
  expect(stub.requestCount).toBe(1);
});

test('throws the later error if the repeated call fails otherwise', async () => {
  const stub = await stubWith(refusing('seed'), replyError(503, { message: 'overloaded' }));
  const error = await failureOf(ask(stub, request({ settings: { seed: 1 } })));
  expect(error.details).toMatchObject({ kind: 'retry', type: 'http_503' });
});

test('requests the answer in one piece if streaming is refused', async () => {
  const stub = await stubWith(
    refusing('stream', 'Your organization must be verified to stream this model.'),
    replyText('hi'),
  );
  const answer = await ask(stub, request(), { stream: true });
  expect(answer).toMatchObject({ text: 'hi', dropped: ['stream'] });
  expect(stub.requests[1]?.body).not.toHaveProperty('stream');
  expect(stub.requests[1]?.body).not.toHaveProperty('stream_options');
});

test('streams without usage if usage is refused', async () => {
  const stub = await stubWith(refusing('stream_options'), replyText('hi'));
  expect((await ask(stub, request(), { stream: true })).dropped).toEqual(['stream_options']);
  expect(stub.requests[1]?.body).toMatchObject({ stream: true });
});

test('keeps the output limit under its other name', async () => {
  const stub = await stubWith(refusing('max_completion_tokens'), replyText('hi'));
  const answer = await ask(stub, request({ settings: { maxOutputTokens: 9 } }));
  expect(answer.dropped).toEqual(['max_completion_tokens']);
  expect(stub.requests[1]?.body).toMatchObject({ max_tokens: 9 });
});

test('puts the instructions before the first message if there is no system role', async () => {
  const stub = await stubWith(
    replyError(400, { message: 'System role not supported' }),
    replyText('hi'),
  );
  expect((await ask(stub, request())).dropped).toEqual(['role:system']);
  expect(stub.requests[1]?.messages).toEqual([{ role: 'user', content: 'Be brief.\n\nhello' }]);
});

test('describes the schema in words as soon as the server refuses schemas', async () => {
  const stub = await stubWith(
    replyError(400, { message: 'This response_format type is unavailable now' }),
    refusing('response_format'),
    replyText('{}'),
  );
  const responseFormat = { name: 'a', schema: { type: 'object' }, instruction: 'Reply in JSON.' };
  const answer = await ask(stub, request({ responseFormat }));
  expect(answer.dropped).toEqual(['response_format:json_schema', 'response_format:json_object']);
  expect(stub.requests.map(({ body }) => body['response_format'])).toEqual([
    { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
    { type: 'json_object' },
    undefined,
  ]);
  expect(stub.requests.map(({ messages }) => messages[0]?.content)).toEqual([
    'Be brief.',
    'Be brief.\n\nReply in JSON.',
    'Be brief.\n\nReply in JSON.',
  ]);
});

test.each([
  ['required', { tool_choice: 'auto' }],
  ['auto', {}],
] as const)('continues with tools if the choice "%s" is refused', async (toolChoice, sent) => {
  const stub = await stubWith(refusing('tool_choice'), replyText('hi'));
  const answer = await ask(stub, request({ tools: [tool], toolChoice }));
  expect(answer.dropped).toEqual([`tool_choice:${toolChoice}`]);
  const { tools, tool_choice } = stub.requests[1]?.body ?? {};
  expect(tools).toHaveLength(1);
  expect({ tool_choice }).toEqual({ tool_choice: undefined, ...sent });
});

test('hides the tools if the server refuses `tool_choice: none`', async () => {
  const stub = await stubWith(refusing('tool_choice'), replyText('hi'));
  const answer = await ask(stub, request({ tools: [tool], toolChoice: 'none' }));
  expect(answer.dropped).toEqual(['tool_choice:none']);
  expect(stub.requests[1]?.body).not.toHaveProperty('tools');
});

test('answers without logprobs if the server refuses them', async () => {
  const denied = { message: 'You are not allowed to request logprobs from this model' };
  const stub = await stubWith(replyError(403, denied), replyText('A'));
  const answer = await ask(stub, request({ logprobs: { top: 5 } }));
  expect(answer.dropped).toEqual(['logprobs']);
  expect(answer).not.toHaveProperty('logprobs');
});

test('does not send again, for another run, what the server has refused', async () => {
  const stub = await stubWith(
    refusing('temperature'),
    ...['a', 'b', 'c', 'd', 'e'].map((text) => replyText(text)),
  );
  const model = modelOf(stub);
  const call = async (rest: Partial<ModelRequest>): Promise<ModelReply> =>
    await model.call(request(rest), { signal: new AbortController().signal });
  const settings = { temperature: 0 };
  await call({ settings });
  // The run pins what it learned, as if the server had refused it again.
  expect((await call({ settings })).dropped).toEqual(['settings.temperature']);
  expect(await call({ settings, without: ['settings.temperature'] })).not.toHaveProperty('dropped');
  // Another setting beside it may have been the reason, and so may the model.
  expect((await call({ settings: { ...settings, top_p: 1 } })).dropped).toBeUndefined();
  expect((await call({ settings, model: 'other' })).dropped).toBeUndefined();
  const sent = stub.requests.map(({ body }) => body?.['temperature']);
  expect(sent).toEqual([0, undefined, undefined, undefined, 0, 0]);
});

test('forgets a refusal after an hour, and the oldest of many', () => {
  let now = 0;
  const known = createKnownRefusals(() => now);
  const listSent = ({ without = [] }: ModelRequest) =>
    (['cache_control', 'provider_items'] as const)
      .filter((parameter) => !without.includes(parameter))
      .map((parameter) => ({ parameter, param: /x/, names: 'x' }));
  const recall = (model: string) => known.recall(request({ model }), listSent);
  expect(recall('m')).toEqual([]);
  known.learn(request({ model: 'm' }), ['cache_control', 'provider_items']);
  // The provider's items are those of one run.
  expect(recall('m')).toEqual(['cache_control']);
  expect(recall('other')).toEqual([]);
  now = 60 * 60_000;
  expect(recall('m')).toEqual([]);
  known.learn(request({ model: 'm' }), ['cache_control']);
  for (let n = 0; n < 500; n += 1) known.learn(request({ model: `m${n}` }), ['cache_control']);
  expect(recall('m')).toEqual([]);
  expect(recall('m499')).toEqual(['cache_control']);
});
