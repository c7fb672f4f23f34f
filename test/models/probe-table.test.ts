import { expect, test } from 'vitest';
import { decideFailure, type FailureDecision } from '../../src/activities/model/model-failures.js';
import type { ModelErrorDetails } from '../../src/models/model.js';
import { openAiModel, type OpenAiModelOptions } from '../../src/models/openai/model.js';
import {
  replyCalls,
  replyCompletion,
  replyError,
  replyRaw,
  replyReset,
  replyText,
  type Delivery,
  type Reply,
} from '../../src/testing/replies.js';
import { callOnce, failureOf, modelOf, stubWith } from './support.js';

/** Decides on a first attempt, with the jitter fixed at its middle. */
function decisionOf(error: Parameters<typeof decideFailure>[0]): FailureDecision {
  return decideFailure(error, { attempt: 1, elapsedMs: 0, random: () => 0.5 });
}

interface Row {
  readonly step: Reply;
  readonly details: ModelErrorDetails;
  readonly decision: FailureDecision;
  readonly options?: OpenAiModelOptions;
}

const SOON: FailureDecision = { type: 'retry', delayMs: 375 };

function retry(type: string, status?: number): Pick<Row, 'details' | 'decision'> {
  const details = { kind: 'retry', type, ...(status !== undefined && { status }) } as const;
  return { details, decision: SOON };
}

function blocked(
  reason: 'quota' | 'credentials' | 'model' | 'bad_request',
  type: string,
  status: number,
): Pick<Row, 'details' | 'decision'> {
  return { details: { kind: reason, type, status }, decision: { type: 'blocked', reason } };
}

function limited(headers: Record<string, string>, waitMs: number): Row {
  return {
    step: replyError(429, { message: 'Slow down', code: 'rate_limit_exceeded' }, { headers }),
    details: { kind: 'retry', type: 'rate_limit', status: 429, retryAfterMs: waitMs },
    decision: { type: 'retry', delayMs: waitMs },
  };
}

const tooLong: Pick<Row, 'details' | 'decision'> = {
  details: { kind: 'context_too_long', type: 'context_length_exceeded', status: 400 },
  decision: { type: 'failed', reason: 'context_too_long' },
};

const html: Delivery = { headers: { 'content-type': 'text/html' } };
const streamed: OpenAiModelOptions = { stream: true };
const hello = 'hello, this is an answer';

const ROWS: Record<string, Row> = {
  'a reset connection': { step: replyReset(), ...retry('connection_reset') },
  'a connection closed in mid-answer': {
    step: replyText(hello, { cut: { afterBytes: 40, how: 'close' } }),
    ...retry('connection_reset'),
  },
  'a connection reset in mid-answer': {
    step: replyText(hello, { cut: { afterBytes: 40, how: 'reset' } }),
    ...retry('connection_reset'),
  },
  'no answer until the client gives up': {
    step: replyText('late', { holdBeforeHeaders: 'never' }),
    options: { timeoutMs: 100 },
    ...retry('timeout'),
  },
  'headers, and no body until the client gives up': {
    step: replyText('late', { holdAfterHeaders: 'never' }),
    options: { timeoutMs: 100 },
    ...retry('timeout'),
  },
  '429 insufficient_quota': {
    step: replyError(429, { message: 'You exceeded', code: 'insufficient_quota' }),
    ...blocked('quota', 'insufficient_quota', 429),
  },
  '429 insufficient_quota that forbids a retry': {
    step: replyError(
      429,
      { type: 'insufficient_quota' },
      { headers: { 'x-should-retry': 'false' } },
    ),
    ...blocked('quota', 'insufficient_quota', 429),
  },
  '402': { step: replyError(402, {}), ...blocked('quota', 'insufficient_quota', 402) },
  '429 with retry-after-ms': limited({ 'retry-after-ms': '1500', 'retry-after': '9' }, 1500),
  '429 with retry-after in seconds': limited({ 'retry-after': '2' }, 2000),
  '429 with retry-after as an HTTP date': limited(
    { date: 'Fri, 20 Nov 2026 10:00:00 GMT', 'retry-after': 'Fri, 20 Nov 2026 10:00:07 GMT' },
    7000,
  ),
  '429 with an absurd retry-after': {
    ...limited({ 'retry-after': '9999999' }, 600_000),
    decision: { type: 'blocked', reason: 'provider', probeAfterMs: 600_000 },
  },
  '429 without retry-after': { step: replyError(429, {}), ...retry('rate_limit', 429) },
  '408': { step: replyError(408, {}), ...retry('http_408', 408) },
  '409': { step: replyError(409, {}), ...retry('http_409', 409) },
  '425': { step: replyError(425, {}), ...retry('http_425', 425) },
  '500': { step: replyError(500, { message: 'oops' }), ...retry('http_500', 500) },
  '502 with a page': {
    step: replyRaw('<html>Bad gateway</html>', { status: 502, ...html }),
    ...retry('http_502', 502),
  },
  '529': { step: replyError(529, { type: 'overloaded_error' }), ...retry('http_529', 529) },
  '503 that forbids a retry': {
    step: replyError(503, {}, { headers: { 'x-should-retry': 'false' } }),
    ...blocked('bad_request', 'http_503', 503),
  },
  '422 that asks for a retry': {
    step: replyError(422, {}, { headers: { 'x-should-retry': 'true' } }),
    ...retry('http_422', 422),
  },
  '401': {
    step: replyError(401, { code: 'invalid_api_key' }),
    ...blocked('credentials', 'unauthorized', 401),
  },
  '403': { step: replyError(403, {}), ...blocked('credentials', 'forbidden', 403) },
  '404 model_not_found': {
    step: replyError(404, { code: 'model_not_found' }),
    ...blocked('model', 'model_not_found', 404),
  },
  '400 context_length_exceeded': {
    step: replyError(400, { code: 'context_length_exceeded' }),
    ...tooLong,
  },
  '400 of another cause': {
    step: replyError(400, { code: 'invalid_value', message: 'temperature' }),
    ...blocked('bad_request', 'invalid_value', 400),
  },
  '200 with a page': { step: replyRaw('<html>Sign in</html>', html), ...retry('html') },
  '200 with a page that is called JSON': { step: replyRaw('<html>'), ...retry('html') },
  '200 with truncated JSON': {
    step: replyText(hello, { cut: { afterBytes: 60, how: 'end' } }),
    ...retry('bad_json'),
  },
  '200 with an empty body': { step: replyRaw(''), ...retry('bad_json') },
  '200 with empty choices': {
    step: replyCompletion({ choices: [] }),
    details: { kind: 'malformed', type: 'empty_choices' },
    decision: SOON,
  },
  '200 without content': {
    step: replyText(''),
    details: { kind: 'empty', type: 'empty_reply' },
    decision: SOON,
  },
  'a stream that ends in order before its finish': {
    step: replyText(hello, { sse: { endBefore: 'finish' } }),
    options: streamed,
    ...retry('stream_cut'),
  },
  'a stream of calls that ends in order in mid-call': {
    step: replyCalls([{ name: 'f', arguments: '{"a":1}' }], {
      sse: { charactersPerEvent: 2 },
      cut: { afterBytes: 700, how: 'end' },
    }),
    options: streamed,
    ...retry('stream_cut'),
  },
  'a stream that is reset before its finish': {
    step: replyText(hello, { cut: { afterBytes: 200, how: 'reset' } }),
    options: streamed,
    ...retry('connection_reset'),
  },
  'a stream that is closed before its finish': {
    step: replyText(hello, { cut: { afterBytes: 200, how: 'close' } }),
    options: streamed,
    ...retry('connection_reset'),
  },
  'a stream with a malformed line': {
    step: replyText(hello, { sse: { malformed: { event: 1, data: '{"choices":' } } }),
    options: streamed,
    ...retry('bad_sse'),
  },
  'a stream that falls silent': {
    step: replyText(hello, { holdAfterHeaders: 'never' }),
    options: { ...streamed, idleMs: 100 },
    ...retry('idle'),
  },
  'a stream that drips on beyond the total': {
    step: replyText(hello.repeat(50), { drip: { bytes: 1, every: 5 } }),
    options: { ...streamed, idleMs: 10_000, timeoutMs: 200 },
    ...retry('timeout'),
  },
  'a page in place of a stream': {
    step: replyRaw('<html>', html),
    options: streamed,
    ...retry('html'),
  },
  'a stream without events': {
    step: replyRaw('', { headers: { 'content-type': 'text/event-stream' } }),
    options: streamed,
    ...retry('stream_cut'),
  },
  'an error within a stream': {
    step: replyText(hello, {
      sse: { malformed: { event: 1, data: '{"error":{"message":"overloaded"}}' } },
    }),
    options: streamed,
    ...retry('stream_error'),
  },
  'spent quota within a stream': {
    step: replyText(hello, {
      sse: { malformed: { event: 1, data: '{"error":{"code":"insufficient_quota"}}' } },
    }),
    options: streamed,
    details: { kind: 'quota', type: 'insufficient_quota' },
    decision: { type: 'blocked', reason: 'quota' },
  },
};

test.each(Object.entries(ROWS))('%s', async (_name, { step, details, decision, options }) => {
  const stub = await stubWith(step);
  const error = await failureOf(callOnce(modelOf(stub, options)));
  expect(error.details).toEqual(details);
  expect(decisionOf(error)).toEqual(decision);
  // One request: nothing below Temporal retries.
  expect(stub.requestCount).toBe(1);
});

test('a refused connection', async () => {
  const stub = await stubWith();
  const model = modelOf(stub);
  await stub.close();
  const error = await failureOf(callOnce(model));
  expect(error.details).toEqual({ kind: 'retry', type: 'connection_refused' });
  expect(error.message).toContain(`${stub.baseUrl}: ECONNREFUSED`);
  expect(decisionOf(error)).toEqual(SOON);
});

test('a name that does not resolve', async () => {
  const error = await failureOf(callOnce(openAiModel({ baseUrl: 'http://no-such.invalid/v1' })));
  expect(error.details).toEqual({ kind: 'retry', type: 'dns' });
  expect(decisionOf(error)).toEqual(SOON);
});

test('two resets and an answer take exactly three requests', async () => {
  const stub = await stubWith(replyReset(), replyReset(), replyText('ok'));
  const model = modelOf(stub);
  await failureOf(callOnce(model));
  await failureOf(callOnce(model));
  expect(await callOnce(model)).toMatchObject({ text: 'ok', finish: 'stop' });
  expect(stub.requestCount).toBe(3);
});

test.each([
  ['OpenAI and Azure', replyError(400, { code: 'content_filter', message: 'filtered' })],
  [
    'Azure in its inner error',
    replyError(400, { innererror: { code: 'ResponsibleAIPolicyViolation' } }),
  ],
])('a prompt refused by the filter of %s is an outcome', async (_name, step) => {
  const stub = await stubWith(step);
  expect(await callOnce(modelOf(stub))).toEqual({ text: '', calls: [], finish: 'filtered' });
});
