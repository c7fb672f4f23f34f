import { describe, expect, test } from 'vitest';
import { anthropicModel } from '../../src/models/anthropic/model.js';
import {
  type Model,
  type ModelDelta,
  type ModelReply,
  isModelError,
} from '../../src/models/model.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyRaw } from '../../src/testing/replies.js';
import { assistantCalls, request, stubWith } from './support.js';

const json = (value: unknown): string => JSON.stringify(value);
const data = (...values: readonly unknown[]): string =>
  values.map((value) => `data: ${json(value)}\n\n`).join('');
const DONE = 'data: [DONE]\n\n';

/** The three APIs: a whole answer, the parts of its stream without an end mark, and an empty answer. */
interface Api {
  readonly model: (baseUrl: string, stream: boolean) => Model;
  readonly whole: object;
  readonly parts: readonly object[];
  readonly empty: object;
}

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const item = { type: 'message', content: [{ type: 'output_text', text: 'right answer' }] };
const response = {
  object: 'response',
  status: 'completed',
  output: [item],
  usage: { input_tokens: 10, output_tokens: 5 },
};
const message = {
  type: 'message',
  role: 'assistant',
  stop_reason: 'end_turn',
  content: [{ type: 'text', text: 'right answer' }],
  usage: { input_tokens: 10, output_tokens: 5 },
};
const key = { apiKey: 'canary-key-1234' };

const APIS: Readonly<Record<string, Api>> = {
  'Chat Completions': {
    model: (baseUrl, stream) => openAiModel({ baseUrl, stream, ...key }),
    whole: { choices: [{ message: { content: 'right answer' }, finish_reason: 'stop' }], usage },
    parts: [
      { choices: [{ delta: { content: 'right ' }, finish_reason: null }] },
      { choices: [{ delta: { content: 'answer' }, finish_reason: null }] },
      { choices: [{ delta: {}, finish_reason: 'stop' }], usage },
    ],
    empty: { choices: [{ message: { content: '' }, finish_reason: 'stop' }], usage },
  },
  Responses: {
    model: (baseUrl, stream) => openAiModel({ baseUrl, stream, api: 'responses', ...key }),
    whole: response,
    parts: [
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message' } },
      { type: 'response.output_text.delta', output_index: 0, delta: 'right ' },
      { type: 'response.output_text.delta', output_index: 0, delta: 'answer' },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response },
    ],
    empty: { ...response, output: [] },
  },
  Messages: {
    model: (baseUrl, stream) => anthropicModel({ baseUrl, stream, ...key }),
    whole: message,
    parts: [
      { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'right ' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'answer' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
    ],
    empty: { ...message, content: [] },
  },
};

const AFTER_RESULT = {
  messages: [
    { role: 'user', text: 'send it' },
    assistantCalls({ id: 'c1', name: 'send', arguments: '{}' }),
    { role: 'tool', callId: 'c1', text: 'sent' },
  ],
} as const;

/** Returns the reply, or the kind of the error, of one request. */
async function answerTo(
  { model }: Pick<Api, 'model'>,
  {
    body,
    type = 'application/json',
    stream,
    asked = {},
  }: { body: string; type?: string; stream: boolean; asked?: Parameters<typeof request>[0] },
): Promise<(ModelReply & { shown: string }) | string> {
  const stub = await stubWith(replyRaw(body, { headers: { 'content-type': type } }));
  const deltas: ModelDelta[] = [];
  try {
    const answer = await model(stub.baseUrl, stream).call(request(asked), {
      signal: new AbortController().signal,
      onDelta: (delta) => void deltas.push(delta),
    });
    const shown = deltas.map(({ kind, text }) => (kind === 'text' ? text : '')).join('');
    return { ...answer, shown };
  } catch (error) {
    if (isModelError(error)) return error.details.kind;
    throw error;
  } finally {
    expect(stub.requestCount).toBe(1);
  }
}

const RIGHT = {
  text: 'right answer',
  finish: 'stop',
  shown: 'right answer',
  usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
};

/** Every form carries the whole answer. */
const FORMS: readonly (readonly [string, (api: Api) => { body: string; type?: string }])[] = [
  ['JSON', ({ whole }) => ({ body: json(whole) })],
  ['JSON as a stream', ({ whole }) => ({ body: json(whole), type: 'text/event-stream' })],
  ['JSON as text', ({ whole }) => ({ body: json(whole), type: 'text/plain; charset=utf-8' })],
  ['JSON as a page', ({ whole }) => ({ body: json(whole), type: 'text/html' })],
  ['JSON as bytes', ({ whole }) => ({ body: json(whole), type: 'application/octet-stream' })],
  [
    'indented JSON after blank lines',
    ({ whole }) => ({
      body: `\n\n  \r\n${JSON.stringify(whole, null, 2)}\n`,
      type: 'text/event-stream',
    }),
  ],
  ['JSON with a byte order mark', ({ whole }) => ({ body: `\uFEFF${json(whole)}` })],
  ['a list with the answer', ({ whole }) => ({ body: json([whole]) })],
  [
    'JSON after comments',
    ({ whole }) => ({
      body: `: PROCESSING\n\n: PROCESSING\n\n${json(whole)}`,
    }),
  ],
  [
    'the answer in one event',
    ({ whole }) => ({
      body: data(whole) + DONE,
      type: 'text/event-stream',
    }),
  ],
  [
    'an error of nulls beside the answer',
    ({ whole }) => ({
      body: json({ ...whole, error: { code: null, message: null } }),
    }),
  ],
  [
    'an error beside the answer',
    ({ whole }) => ({
      body: json({ error: { message: 'a warning' }, ...whole }),
    }),
  ],
  [
    'an answer with a status of success',
    ({ whole }) => ({
      body: json({ ...whole, base_resp: { status_code: 0, status_msg: '' } }),
    }),
  ],
  ['events', ({ parts }) => ({ body: data(...parts) + DONE, type: 'text/event-stream' })],
  ['events as JSON', ({ parts }) => ({ body: data(...parts) + DONE })],
  ['events as text', ({ parts }) => ({ body: data(...parts) + DONE, type: 'text/plain' })],
  [
    'events without an end mark',
    ({ parts }) => ({
      body: data(...parts),
      type: 'text/event-stream',
    }),
  ],
  [
    'events without the last empty line',
    ({ parts }) => ({
      body: data(...parts).trimEnd(),
      type: 'text/event-stream',
    }),
  ],
  [
    'events with CRLF',
    ({ parts }) => ({
      body: (data(...parts) + DONE).replaceAll('\n', '\r\n'),
      type: 'text/event-stream',
    }),
  ],
  [
    'events with CR',
    ({ parts }) => ({
      body: (data(...parts) + DONE).replaceAll('\n', '\r'),
      type: 'text/event-stream',
    }),
  ],
  [
    'events without a blank, after a byte order mark',
    ({ parts }) => ({
      body: `\uFEFF${(data(...parts) + DONE).replaceAll('data: ', 'data:')}`,
      type: 'text/event-stream',
    }),
  ],
  [
    'events between signs of life',
    ({ parts }) => ({
      body: parts
        .map(
          (part) =>
            `: ping\n\ndata: \n\ndata:\n\nevent: ping\ndata: {}\n\ndata: ping\n\n${data(part)}`,
        )
        .join(`data: ${json({ type: 'ping' })}\n\ndata: null\n\n`),
      type: 'text/event-stream',
    }),
  ],
  [
    'JSON lines',
    ({ parts }) => ({
      body: parts.map((part) => `${json(part)}\n`).join(''),
      type: 'application/x-ndjson',
    }),
  ],
];

const CASES = Object.entries(APIS).flatMap(([name, api]) =>
  [true, false].map((stream) => [name, stream, api] as const),
);

describe.each(CASES)('%s, streamed: %s', (_name, stream, api) => {
  test.each(FORMS)('uses %s', async (_form, bodyOf) => {
    expect(await answerTo(api, { ...bodyOf(api), stream })).toMatchObject(RIGHT);
  });

  const spent = { message: 'You exceeded your current quota.', code: 'insufficient_quota' };
  test.each<[string, string, string?]>([
    ['an object', json({ error: spent })],
    ['an object as a stream', json({ error: spent }), 'text/event-stream'],
    ['an object as text', json({ error: spent }), 'text/plain'],
    ['a list', json([{ error: spent }])],
    [
      'beside empty choices, output, or content',
      json({ error: spent, choices: [], output: [], content: [] }),
    ],
    [
      'a choice',
      json({ choices: [{ error: spent, finish_reason: 'error', message: { content: '' } }] }),
    ],
    [
      'a base response',
      json({ choices: null, base_resp: { status_code: 1008, status_msg: 'no' } }),
    ],
    ['a text', json({ error: 'insufficient credits' })],
    ['an envelope', json({ success: false, errors: [spent], result: null })],
    ['an event', data({ error: spent }), 'text/event-stream'],
    ['a list in an event', data([{ error: spent }]), 'text/event-stream'],
    ['a named event', `event: error\ndata: ${json(spent)}\n\n`, 'text/event-stream'],
    ['words in a named event', 'event: error\ndata: insufficient credits\n\n', 'text/event-stream'],
    ['a choice of an event', data({ choices: [{ delta: {}, error: spent }] }), 'text/event-stream'],
    ['an event of an older server', data({ object: 'error', ...spent }), 'text/event-stream'],
  ])('reads the error of a successful status from %s', async (_place, body, type) => {
    const given = { body, stream, ...(type !== undefined && { type }) };
    expect(await answerTo(api, given)).toBe('quota');
  });

  test('lets a model end in silence after a result, and nowhere else', async () => {
    const body = json(api.empty);
    const silent = { text: '', calls: [], finish: 'stop', usage: RIGHT.usage };
    expect(await answerTo(api, { body, stream, asked: AFTER_RESULT })).toMatchObject(silent);
    expect(await answerTo(api, { body, stream })).toBe('empty');
    const required = { ...AFTER_RESULT, toolChoice: 'required' } as const;
    expect(await answerTo(api, { body, stream, asked: required })).toBe('empty');
    const responseFormat = { name: 'a', schema: { type: 'object' } };
    expect(await answerTo(api, { body, stream, asked: { ...AFTER_RESULT, responseFormat } })).toBe(
      'empty',
    );
  });

  test('takes an incomplete stream for what it is', async () => {
    const body = data(...api.parts.slice(0, 2));
    expect(await answerTo(api, { body, stream, type: 'text/event-stream' })).toBe('retry');
    const cut = body + data(...api.parts.slice(2, 3)).slice(0, 20);
    expect(await answerTo(api, { body: cut, stream, type: 'text/event-stream' })).toBe('retry');
  });
});

const chat = APIS['Chat Completions'] as Api;
const choice = (fields: object): string => json({ choices: [fields], usage });

test.each<[string, string]>([
  ['a text', choice({ text: 'right answer', finish_reason: 'stop' })],
  ['a delta', choice({ delta: { content: 'right answer' }, finish_reason: 'stop' })],
  ['a message that is a text', choice({ message: 'right answer', finish_reason: 'stop' })],
  ['no choice but a message', json({ message: { content: 'right answer' }, done: true, usage })],
])('Chat Completions: a choice with %s is an answer', async (_what, body) => {
  expect(await answerTo(chat, { body, stream: false })).toMatchObject(RIGHT);
});

test.each<[string, readonly object[]]>([
  [
    'texts in place of deltas',
    [
      { choices: [{ text: 'right ', finish_reason: null }] },
      { choices: [{ text: 'answer', finish_reason: 'stop' }], usage },
    ],
  ],
  [
    'a final usage in place of a finish reason',
    [{ choices: [{ delta: { content: 'right answer' } }] }, { choices: [], usage }],
  ],
  [
    'a final message with the whole text',
    [
      { choices: [{ delta: { content: 'right answer' } }] },
      { choices: [{ message: { content: 'right answer' }, finish_reason: 'stop' }], usage },
    ],
  ],
  [
    'an error after the finish reason',
    [
      { choices: [{ delta: { content: 'right answer' }, finish_reason: 'stop' }], usage },
      { error: { message: 'late' } },
    ],
  ],
])('Chat Completions: a stream with %s is an answer', async (_what, parts) => {
  const body = data(...parts);
  expect(await answerTo(chat, { body, stream: true, type: 'text/event-stream' })).toMatchObject(
    RIGHT,
  );
});

test.each<[string, string]>([
  ['SAFETY', 'filtered'],
  ['content_filter: PROHIBITED_CONTENT', 'filtered'],
  ['sensitive', 'filtered'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['MAX_TOKENS', 'length'],
  ['function_call_filter: MALFORMED_FUNCTION_CALL', 'malformed'],
  ['malformed_function_call', 'malformed'],
  ['network_error', 'retry'],
  ['insufficient_system_resource', 'retry'],
  ['end_turn', 'stop'],
])('Chat Completions: the finish reason "%s" is read as %s', async (reason, expected) => {
  const body = choice({ message: { content: 'par' }, finish_reason: reason });
  const stream = data({ choices: [{ delta: { content: 'par' }, finish_reason: reason }] });
  const answers = [
    await answerTo(chat, { body, stream: false }),
    await answerTo(chat, { body: stream, stream: true, type: 'text/event-stream' }),
  ];
  expect(answers.map((one) => (typeof one === 'string' ? one : one.finish))).toEqual([
    expected,
    expected,
  ]);
});

test('Messages: an end without its reason is the end', async () => {
  const messages = APIS['Messages'] as Api;
  const body = data(...messages.parts.slice(0, -1), { type: 'message_stop' });
  const answer = await answerTo(messages, { body, stream: true, type: 'text/event-stream' });
  expect(answer).toMatchObject({ text: 'right answer', finish: 'stop' });
});

test.each<[string, string]>([
  ['the text beside empty output', json({ output: [], output_text: 'right answer' })],
  ['output that is a text', json({ output: 'right answer' })],
  ['a wrapped response', json({ response })],
])('Responses: %s is an answer', async (_what, body) => {
  const responses = APIS['Responses'] as Api;
  expect(await answerTo(responses, { body, stream: false })).toMatchObject({
    text: 'right answer',
  });
});

test('Responses: complete items and the end mark are a complete answer', async () => {
  const responses = APIS['Responses'] as Api;
  const type = 'text/event-stream';
  const body = data(...responses.parts.slice(0, -1));
  expect(await answerTo(responses, { body: body + DONE, stream: true, type })).toMatchObject({
    text: 'right answer',
  });
  expect(await answerTo(responses, { body, stream: true, type })).toBe('retry');
});
