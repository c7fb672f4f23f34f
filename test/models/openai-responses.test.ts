import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/text/json.js';
import type { PromptMessage, ProviderItems } from '../../src/core/transcript/messages.js';
import { OPTIMISTIC } from '../../src/models/known-models.js';
import type { ModelDelta, ModelReply } from '../../src/models/model.js';
import { parseResponse } from '../../src/models/openai/responses/reply.js';
import { createResponsesRequest } from '../../src/models/openai/responses/request.js';
import { assembleResponse } from '../../src/models/openai/responses/stream.js';
import { getMaker } from '../../src/models/wire/opaque-fields.js';
import {
  replyCompletion,
  replyError,
  replyRaw,
  replyText,
  type Reply,
} from '../../src/testing/replies.js';
import {
  assistantCalls,
  failureOf,
  modelOf,
  place,
  request,
  source,
  stubWith,
  thrownBy,
} from './support.js';

const from = getMaker(place);
const strict = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
};

function wire(rest: Parameters<typeof request>[0], capabilities = OPTIMISTIC) {
  const referred = { data: new Map(), replay: { stored: new Map(), from } };
  return createResponsesRequest(request(rest), { stream: false, capabilities, ...referred });
}

test('writes instructions, items, tools, limits, and formats in the form of the API', () => {
  const image = { type: 'image', url: 'https://a.example/x.png' } as const;
  const body = wire({
    messages: [
      { role: 'user', text: 'look', attachments: [image] },
      assistantCalls({ id: 'call_1_1_0', name: 'f', arguments: '{"a":1}' }),
      { role: 'tool', callId: 'call_1_1_0', text: 'ok' },
      { role: 'assistant', text: 'Done.' },
    ],
    tools: [{ name: 'f', description: 'Does.', parameters: strict }],
    toolChoice: 'required',
    responseFormat: { name: 'the answer', schema: strict },
    logprobs: { top: 50 },
    settings: {
      maxOutputTokens: 50,
      temperature: 0.5,
      reasoning_effort: 'low',
      verbosity: 'low',
      reasoning: { summary: 'auto' },
    },
  });
  expect(body).toEqual({
    model: 'stub',
    instructions: 'Be brief.',
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'look' },
          { type: 'input_image', image_url: image.url, detail: 'auto' },
        ],
      },
      { type: 'function_call', call_id: 'call_1_1_0', name: 'f', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'call_1_1_0', output: 'ok' },
      { type: 'message', role: 'assistant', content: 'Done.' },
    ],
    tools: [
      { type: 'function', name: 'f', description: 'Does.', parameters: strict, strict: false },
    ],
    tool_choice: 'required',
    text: {
      verbosity: 'low',
      format: { type: 'json_schema', name: 'the_answer', schema: strict, strict: true },
    },
    include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
    top_logprobs: 20,
    max_output_tokens: 50,
    temperature: 0.5,
    reasoning: { summary: 'auto', effort: 'low' },
    store: false,
  });
});

test.each(['previous_response_id', 'conversation', 'background', 'store'])(
  'refuses the setting %s: the run itself is the conversation',
  (name) => {
    const failure = thrownBy(() => wire({ settings: { [name]: 'x' } }));
    expect(failure.details).toMatchObject({ kind: 'request', type: 'bad_setting' });
    expect(failure.message).toContain(`settings.${name}`);
  },
);

test('leaves out refused parameters', () => {
  const without = ['include', 'store', 'settings.reasoning_effort'] as const;
  const body = wire({ without, settings: { reasoning_effort: 'low' } });
  expect(Object.keys(body)).toEqual(['model', 'instructions', 'input']);
});

const reasoningItem = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'xyz' };
function message(id: string, text: string, rest: object = {}) {
  const content = [{ type: 'output_text', text, annotations: [] }];
  return { id, type: 'message', status: 'completed', role: 'assistant', content, ...rest };
}
function call(id: string, name: string, args: string) {
  const called = { call_id: `their_${id}`, name, arguments: args };
  return { id, type: 'function_call', status: 'completed', ...called };
}

/** Returns the items of the next request after a reply with this output. */
function replayed(output: readonly object[], rest: Partial<ModelReply> = {}, by = from) {
  const result = { ...parseResponse({ status: 'completed', output }, source()), ...rest };
  const calls = result.calls.map((one, index) => ({ ...one, id: `call_${index}`, digest: '' }));
  const assistantMessage: PromptMessage = {
    role: 'assistant',
    text: result.text,
    calls,
    ...(result.provider && {
      provider: JSON.parse(JSON.stringify(result.provider)) as ProviderItems,
    }),
  };
  const references = { data: new Map(), replay: { stored: new Map(), from: by } };
  const asking = request({ messages: [assistantMessage] });
  const options = { stream: false, capabilities: OPTIMISTIC, ...references };
  return createResponsesRequest(asking, options).input;
}

test('replays the items in order, with calls under our own ids', () => {
  const search = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { q: 1 } };
  const output = [reasoningItem, search, message('m1', 'I look.'), call('f1', 'f', '{}')];
  const own = { ...call('f1', 'f', '{}'), call_id: 'call_0' };
  expect(replayed(output)).toEqual([reasoningItem, search, message('m1', 'I look.'), own]);
});

test('splits a text into its messages, and keeps their phases', () => {
  const first = message('m1', 'One.', { phase: 'commentary' });
  const output = [first, reasoningItem, message('m2', 'Two.', { phase: 'final_answer' })];
  expect(parseResponse({ output }, source()).text).toBe('One.\n\nTwo.');
  expect(replayed(output)).toEqual(output);
  // A text of another length goes into the first message.
  const cut = replayed(output, { text: 'One.…o.' });
  expect(cut).toEqual([message('m1', 'One.…o.', { phase: 'commentary' })]);
});

test('reads a call whose arguments are an object of any depth', () => {
  const deep: unknown = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000));
  const output = [{ ...call('f1', 'f', ''), arguments: { a: 1 } }];
  expect(parseResponse({ output }, source()).calls).toEqual([{ name: 'f', arguments: '{"a":1}' }]);
  const { calls } = parseResponse({ output: [{ ...output[0], arguments: deep }] }, source());
  expect(calls).toEqual([{ name: 'f', arguments: '[nested too deeply]' }]);
});

test('replays nothing to another model, and stores nothing in addition to texts and calls', () => {
  const output = [reasoningItem, message('m1', 'Hm.'), call('f1', 'f', '{}')];
  const plain = [
    { type: 'message', role: 'assistant', content: 'Hm.' },
    { type: 'function_call', call_id: 'call_0', name: 'f', arguments: '{}' },
  ];
  expect(replayed(output, {}, 'another')).toEqual(plain);
  expect(replayed(output.slice(1))).toEqual(plain);
  expect(parseResponse({ output: output.slice(1) }, source())).not.toHaveProperty('provider');
});

test('does not replay reasoning that nothing follows, or that only the provider has', () => {
  const output = [reasoningItem, call('f1', 'f', '{}')];
  expect(replayed(output, { calls: [] })).toEqual([]);
  const hidden = { id: 'rs_2', type: 'reasoning', summary: [] };
  expect(parseResponse({ output: [hidden, message('m', 'x')] }, source())).not.toHaveProperty(
    'provider',
  );
});

test.each<[string, JsonObject, object]>([
  ['server_error', { code: 'server_error', message: 'oops' }, { kind: 'retry' }],
  ['a rate limit', { code: 'rate_limit_exceeded' }, { kind: 'retry', type: 'rate_limit' }],
  ['an invalid prompt', { code: 'invalid_prompt', message: 'no' }, { kind: 'request' }],
  ['a bad image', { code: 'image_too_large' }, { kind: 'request', type: 'image_too_large' }],
])('reports a failed response, %s, as such, also in a stream', async (_name, error, details) => {
  const failed = { object: 'response', status: 'failed', error, output: [] };
  expect(thrownBy(() => parseResponse(failed, source())).details).toMatchObject(details);
  const stub = await stubWith(replyCompletion(failed), replyCompletion(failed));
  for (const stream of [false, true]) {
    // Sequential, since the script is a queue.
    // oxlint-disable-next-line no-await-in-loop
    const failure = await failureOf(
      modelOf(stub, { api: 'responses', stream }).call(request(), {
        signal: new AbortController().signal,
      }),
    );
    expect(failure.details).toMatchObject(details);
  }
});

test('treats a policy stop as an outcome', () => {
  const failed = { status: 'failed', error: { code: 'bio_policy' }, output: [] };
  expect(parseResponse(failed, source())).toEqual({ text: '', calls: [], finish: 'filtered' });
});

async function watched(step: Reply): Promise<{ reply: ModelReply; text: string }> {
  const stub = await stubWith(step);
  const deltas: ModelDelta[] = [];
  const signal = new AbortController().signal;
  const onDelta = (delta: ModelDelta): void => void deltas.push(delta);
  const result = await modelOf(stub, { api: 'responses' }).call(request(), { signal, onDelta });
  expect(stub.requests[0]?.body['stream']).toBe(true);
  return {
    reply: result,
    text: deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join(''),
  };
}

test('counts a repeated event once', async () => {
  const sse = { twice: true, charactersPerEvent: 2 };
  const { reply: result, text } = await watched(replyText('ha ha ha', { sse }));
  expect([result.text, text]).toEqual(['ha ha ha', 'ha ha ha']);
});

test('reads usage with its parts', async () => {
  const usage = {
    prompt_tokens: 20,
    completion_tokens: 9,
    total_tokens: 29,
    prompt_tokens_details: { cached_tokens: 16 },
    completion_tokens_details: { reasoning_tokens: 7 },
  };
  const counted = { inputTokens: 20, outputTokens: 9, cachedTokens: 16, reasoningTokens: 7 };
  expect((await watched(replyText('hi', { usage }))).reply.usage).toEqual(counted);
});

test('fails for a stream without its last event, and for one with a broken event', async () => {
  const stub = await stubWith(
    replyText('hello', { sse: { endBefore: 'finish' } }),
    replyText('hello', { sse: { malformed: { event: 4, data: '{"type":' } } }),
    replyRaw('event: error\ndata: {"type":"error","code":"server_error","message":"x"}\n\n', {
      headers: { 'content-type': 'text/event-stream' },
    }),
  );
  const model = modelOf(stub, { api: 'responses', stream: true });
  const signal = new AbortController().signal;
  for (const type of ['stream_cut', 'bad_sse', 'stream_error']) {
    // Sequential, since the script is a queue.
    // oxlint-disable-next-line no-await-in-loop
    const { details } = await failureOf(model.call(request(), { signal }));
    expect(details).toMatchObject({ kind: 'retry', type });
  }
});

test('takes the items from the stream if the last event has none', () => {
  const deltas: ModelDelta[] = [];
  const assembly = assembleResponse((delta) => void deltas.push(delta), source());
  const item = { ...call('f1', 'f', ''), arguments: '' };
  assembly.add({ type: 'response.output_item.added', output_index: 0, item });
  const args = { output_index: 0, delta: '{"a":1}' };
  assembly.add({ type: 'response.function_call_arguments.delta', ...args });
  assembly.add({ type: 'response.completed', response: { status: 'completed', output: [] } });
  const result = parseResponse(assembly.answer(), source());
  expect(result.calls).toEqual([{ name: 'f', arguments: '{"a":1}' }]);
  expect(deltas).toEqual([
    { kind: 'call', index: 0, name: 'f', text: '' },
    { kind: 'call', index: 0, text: '{"a":1}' },
  ]);
});

test.each<[string, Record<string, string>, string]>([
  [
    'thoughts of a model that has none',
    { message: 'Encrypted content is not supported with this model.', param: 'include' },
    'include',
  ],
  [
    'an effort',
    {
      message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      param: 'reasoning.effort',
    },
    'settings.reasoning_effort',
  ],
  [
    'a schema in strict mode',
    { message: "Invalid schema for response_format 'a': x", param: 'text.format.schema' },
    'response_format:strict',
  ],
  ['streaming', { message: 'Streaming is not supported here.', param: 'stream' }, 'stream'],
])('continues without %s if the server refuses it', async (_name, error, dropped) => {
  const refusal = replyError(400, { type: 'invalid_request_error', ...error });
  const stub = await stubWith(refusal, replyText('{"a":"b"}'));
  const asking = request({
    settings: { reasoning_effort: 'low' },
    responseFormat: { name: 'a', schema: strict },
  });
  const model = modelOf(stub, { api: 'responses', stream: true });
  const result = await model.call(asking, { signal: new AbortController().signal });
  expect(result).toMatchObject({ text: '{"a":"b"}', dropped: [dropped] });
});
