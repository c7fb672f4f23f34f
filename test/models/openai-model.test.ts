import { expect, test } from 'vitest';
import { openAiModel } from '../../src/models/openai/model.js';
import {
  replyCalls,
  replyCompletion,
  replyError,
  replyRaw,
  replyText,
  type CompletionOptions,
  type Reply,
} from '../../src/testing/replies.js';
import { callOnce, failureOf, modelOf, request, stubWith } from './support.js';

const calls = [
  { name: 'read_file', arguments: { path: 'ä.txt' } },
  { name: 'list_files', arguments: {} },
];

const saidAndCalled = {
  text: 'Grüße, I look.',
  calls: [
    { name: 'read_file', arguments: '{"path":"ä.txt"}' },
    { name: 'list_files', arguments: '{}' },
  ],
  finish: 'calls',
  usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
};

function saying(options: CompletionOptions = {}): Reply {
  return replyCalls(calls, { text: 'Grüße, I look.', ...options });
}

test('sends one request with the key, and no retry headers of its own', async () => {
  const stub = await stubWith(replyText('hi', { headers: { 'x-request-id': 'req_7' } }));
  const answer = await callOnce(modelOf(stub));
  expect(answer).toEqual({
    text: 'hi',
    calls: [],
    finish: 'stop',
    usage: { inputTokens: 10, outputTokens: 5, cachedTokens: 0 },
    requestId: 'req_7',
  });
  expect(stub.requests[0]?.headers.authorization).toBe('Bearer canary-key-1234');
  expect(stub.requests[0]?.body).toEqual({
    model: 'stub',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hello' },
    ],
  });
});

test.each<[string, Reply]>([
  ['in one piece', saying()],
  ['in deltas', saying({ sse: { charactersPerEvent: 3 } })],
  ['byte by byte', saying({ sse: { charactersPerEvent: 9 }, drip: { bytes: 1, every: 0 } })],
  ['with CRLF, byte by byte', saying({ sse: { lineEnd: '\r\n' }, drip: { bytes: 1, every: 0 } })],
  ['with comments between events', saying({ sse: { comments: true, charactersPerEvent: 2 } })],
  ['without the end mark', saying({ sse: { endBefore: 'done' } })],
])('reads the same reply from a stream %s as from a whole answer', async (_name, step) => {
  const stub = await stubWith(saying(), step);
  expect(await callOnce(modelOf(stub))).toEqual(saidAndCalled);
  expect(await callOnce(modelOf(stub, { stream: true }))).toEqual(saidAndCalled);
  expect(stub.requests.map(({ body }) => body['stream'])).toEqual([undefined, true]);
});

test('reads a refusal, a filter and a length from a stream', async () => {
  const message = { role: 'assistant', content: null, refusal: 'No.' };
  const stub = await stubWith(
    replyCompletion({ choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    replyText('par', { finish: 'content_filter' }),
    replyText('par', { finish: 'length', usage: null }),
  );
  const model = modelOf(stub, { stream: true });
  expect(await callOnce(model)).toMatchObject({ text: 'No.', finish: 'refused' });
  expect(await callOnce(model)).toMatchObject({ text: 'par', finish: 'filtered' });
  expect(await callOnce(model)).toEqual({ text: 'par', calls: [], finish: 'length' });
});

test('accepts an answer whose stream breaks after the finish reason', async () => {
  const whole = replyText('hello', { usage: null });
  const broken = replyText('hello', {
    // 0 role, 1 text, 2 finish, 3 usage
    sse: { malformed: { event: 3, data: '{"usage":' } },
  });
  const stub = await stubWith(whole, broken);
  const model = modelOf(stub, { stream: true });
  expect(await callOnce(model)).toEqual(await callOnce(model));
});

test('reads a whole answer although a stream was requested', async () => {
  const whole = { choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] };
  const stub = await stubWith(replyRaw(JSON.stringify(whole)));
  expect(await callOnce(modelOf(stub, { stream: true }))).toMatchObject({ text: 'hi' });
});

test('reads a streamed answer although none was requested', async () => {
  const chunk = { choices: [{ delta: { content: 'hi' }, finish_reason: 'stop' }] };
  const step = replyRaw(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  });
  const stub = await stubWith(step);
  expect(await callOnce(modelOf(stub))).toMatchObject({ text: 'hi', finish: 'stop' });
});

test.each([
  ['there is text, then [DONE]', [{ content: 'hi' }], '[DONE]', 'hi'],
  ['the stream just ended', [{ content: 'hi' }], '', null],
  ['[DONE] arrived after nothing', [{}], '[DONE]', null],
  ['the text contains [DONE]', [{ content: 'so:\ndata: [DONE]' }], '', null],
])('an answer without a finish reason is complete if %s', async (_name, deltas, end, text) => {
  const events = deltas.map((delta) => JSON.stringify({ choices: [{ delta }] }));
  const body = [...events, end].filter(Boolean).map((data) => `data: ${data}\n\n`);
  const headers = { 'content-type': 'text/event-stream' };
  const drip = { bytes: 7, every: 0 };
  const stub = await stubWith(replyRaw(body.join(''), { headers, drip }));
  const answer = callOnce(modelOf(stub, { stream: true }));
  if (text === null) expect((await failureOf(answer)).details.type).toBe('stream_cut');
  else expect(await answer).toMatchObject({ text, finish: 'stop' });
});

test('accepts a slow but steady stream within the total limit', async () => {
  const stub = await stubWith(replyText('x'.repeat(20), { drip: { bytes: 10, every: 25 } }));
  const answer = await callOnce(modelOf(stub, { stream: true, idleMs: 1000 }));
  expect(answer.text).toHaveLength(20);
});

test('rejects with the reason of the signal, and closes the connection', async () => {
  const stub = await stubWith(
    replyText('never', { holdBeforeHeaders: 'gate' }),
    replyText('never', { holdAfterHeaders: 'body' }),
    replyText('never', { holdAfterHeaders: 'stream' }),
  );
  const whole = modelOf(stub);
  const streaming = modelOf(stub, { stream: true });
  for (const [model, gate] of [
    [whole, 'gate'],
    [whole, 'body'],
    [streaming, 'stream'],
  ] as const) {
    const controller = new AbortController();
    const reason = new Error(`cancelled at ${gate}`);
    const answer = callOnce(model, controller.signal).catch((error: unknown) => error);
    // The calls share one signal and must be sequential.
    // oxlint-disable-next-line no-await-in-loop
    await stub.barrier(gate).reached;
    controller.abort(reason);
    // oxlint-disable-next-line no-await-in-loop
    expect(await answer).toBe(reason);
  }
  const ends = await Promise.all(stub.requests.map(({ ended }) => ended));
  expect(ends).toEqual(['client', 'client', 'client']);
});

test('makes no request for a signal that has already aborted', async () => {
  const stub = await stubWith();
  const reason = { any: 'value' };
  const answer = callOnce(modelOf(stub), AbortSignal.abort(reason));
  await expect(answer).rejects.toBe(reason);
  expect(stub.requestCount).toBe(0);
});

test('leaves no listener on a signal that outlives the call', async () => {
  const stub = await stubWith();
  stub.fallback(() => replyText('ok'));
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...args);
  };
  await callOnce(modelOf(stub), signal);
  expect(listeners).toBe(0);
});

test('names model and base URL if the model is missing', async () => {
  const stub = await stubWith(
    replyRaw('{"object":"error","message":"The model `stub` does not exist."}', { status: 404 }),
  );
  const { message } = await failureOf(callOnce(modelOf(stub)));
  expect(message).toBe(
    `404 from ${stub.baseUrl}: unknown model "stub"; use one listed by GET ${stub.baseUrl}/models, or correct OPENAI_BASE_URL. Provider's message: The model \`stub\` does not exist.`,
  );
});

test("shows a proxy's message that is not JSON", async () => {
  const stub = await stubWith(replyRaw('<h1>upstream\n is down</h1>', { status: 502 }));
  const { message } = await failureOf(callOnce(modelOf(stub)));
  expect(message).toBe(
    `502 from ${stub.baseUrl}: temporarily unavailable. Provider's message: <h1>upstream is down</h1>`,
  );
});

test('keeps the request id of an error', async () => {
  const stub = await stubWith(replyError(500, {}, { headers: { 'x-request-id': 'req_9' } }));
  const { details } = await failureOf(callOnce(modelOf(stub)));
  expect(details.requestId).toBe('req_9');
});

test('refuses an answer that would fill the memory', async () => {
  const stub = await stubWith(replyRaw('x'.repeat(33 * 1024 * 1024)));
  const { details } = await failureOf(callOnce(modelOf(stub)));
  expect(details).toEqual({ kind: 'request', type: 'answer_too_large' });
});

test('writes nothing to the console, not even for a broken stream with OPENAI_LOG set', async () => {
  const lines: unknown[] = [];
  const { error, debug, warn } = console;
  const log = (...line: unknown[]): void => void lines.push(line);
  Object.assign(console, { error: log, debug: log, warn: log });
  process.env['OPENAI_LOG'] = 'debug';
  try {
    const stub = await stubWith(
      replyText('x', { sse: { malformed: { event: 1, data: 'secret{' } } }),
    );
    await failureOf(callOnce(modelOf(stub, { stream: true })));
  } finally {
    Object.assign(console, { error, debug, warn });
    delete process.env['OPENAI_LOG'];
  }
  expect(lines).toEqual([]);
});

test.each([
  ['an address without http', { baseUrl: 'localhost:11434' }, /base URL .* is not an http/],
  ['a key as the address', { baseUrl: 'sk-hunter2' }, /^(?!.*hunter2).*is not an http/],
  [
    'a password in the address',
    { baseUrl: 'http://me:hunter2@x/v1' },
    /^(?!.*hunter2).*OPENAI_API_KEY/,
  ],
  ['a key with a line break', { apiKey: 'canary\nkey' }, /^(?!.*canary).*OPENAI_API_KEY/],
  ['an empty key', { apiKey: '' }, /OPENAI_API_KEY/],
])('refuses %s at once, with the fix', (_name, options, message) => {
  expect(() => openAiModel(options)).toThrow(message);
});

test('accepts a slash at the end of the base URL', async () => {
  const stub = await stubWith(replyText('ok'));
  const model = openAiModel({ baseUrl: `${stub.baseUrl}//` });
  expect(await model.call(request(), { signal: new AbortController().signal })).toMatchObject({
    text: 'ok',
  });
});
