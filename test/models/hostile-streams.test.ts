import { expect, onTestFinished, test } from 'vitest';
import { decideFailure } from '../../src/activities/model/model-failures.js';
import { watchCall, parseBounded, ReplyTooLargeError } from '../../src/models/wire/reply-limits.js';
import { saysContextTooLong } from '../../src/models/wire/read-error.js';
import { ignoreDeltas } from '../../src/models/model.js';
import { readAnswer } from '../../src/models/wire/answer.js';
import type { WireApi } from '../../src/models/wire/api.js';
import { anthropicApi } from '../../src/models/anthropic/api.js';
import { chatApi } from '../../src/models/openai/chat/index.js';
import { readSse } from '../../src/models/wire/client.js';
import { createOpenAiClient, openAiModel } from '../../src/models/openai/model.js';
import { responsesApi } from '../../src/models/openai/responses/reply.js';
import { createObjectScanner } from '../../src/models/wire/streamed-arguments.js';
import { httpServer } from '../support/http-server.js';
import { callOnce, failureOf, modelOf, place, stubWith } from './support.js';
import { replyCalls, replyRaw } from '../../src/testing/replies.js';

const client = createOpenAiClient(
  { url: 'http://provider/v1', search: '' },
  {
    apiKey: undefined,
    apiKeyEnv: 'OPENAI_API_KEY',
    timeoutMs: 10_000,
  },
);
const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] });
const call = (index: number, args: string, name?: string): string =>
  chunk({ tool_calls: [{ index, function: { name, arguments: args } }] });
const END = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`;

async function read(api: WireApi, text: string, bytesPerChunk = 65_536) {
  const bytes = Buffer.from(text);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + bytesPerChunk)));
      at += bytesPerChunk;
    },
  });
  const headers = new Headers({ 'content-type': 'text/event-stream' });
  const watch = watchCall(new AbortController().signal, { timeoutMs: 60_000, idleMs: 60_000 });
  const options = { api, client, watch, emit: ignoreDeltas, streamed: true };
  try {
    return await readAnswer(new Response(body, { headers }), { headers, place }, options);
  } finally {
    watch.stop();
  }
}

const item = (index: number): string =>
  event({
    type: 'response.output_item.added',
    output_index: index,
    item: { type: 'function_call', name: 'f', arguments: '{}' },
  });
const response = (output: readonly object[]): string =>
  event({ type: 'response.completed', response: { status: 'completed', output } });
const block = (index: number, begin: object, delta: object): string =>
  event({ type: 'content_block_start', index, content_block: begin }) +
  event({ type: 'content_block_delta', index, delta });
const use = { type: 'tool_use', name: 'f', input: {} };
const many = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join('');

test.each<[string, WireApi, string]>([
  ['calls in deltas', chatApi, many(2_000, (index) => call(index, '{}', 'f')) + END],
  ['text', chatApi, chunk({ content: 'x'.repeat(9 * 1024 * 1024) }, 'stop')],
  ['thoughts that are kept', chatApi, chunk({ reasoning_content: 'x'.repeat(9e6) }) + END],
  ['arguments', chatApi, call(0, `"${'x'.repeat(9e6)}"`, 'f') + END],
  ['items', responsesApi, many(10_001, item) + response([])],
  [
    'calls in a whole response',
    responsesApi,
    response(Array.from({ length: 2_000 }, () => ({ type: 'function_call', name: 'f' }))),
  ],
  ['calls of Messages', anthropicApi, many(2_000, (index) => block(index, use, {}))],
  [
    'blocks of Messages',
    anthropicApi,
    many(10_001, (index) => block(index, { type: 'redacted_thinking', data: '' }, {})),
  ],
  ...['text', 'thinking'].map((type): [string, WireApi, string] => [
    `characters of ${type} of Messages`,
    anthropicApi,
    block(0, { type }, { [type]: 'x'.repeat(9e6) }),
  ]),
  ['arguments of Messages', anthropicApi, block(0, use, { partial_json: 'x'.repeat(9e6) })],
  ['values in one event', chatApi, `data: [${'{},'.repeat(1_100_000)}0]\n\n`],
  ['bytes', chatApi, `${': comment\n'.repeat(3_500_000)}${END}`],
])('a stream with too many %s is refused, and not requested again', async (_, api, text) => {
  const error = await failureOf(read(api, text));
  expect(error.details).toMatchObject({ kind: 'request', type: 'answer_too_large' });
  expect(decideFailure(error, { attempt: 1, elapsedMs: 0, random: () => 0 })).toEqual({
    type: 'failed',
    reason: 'error',
  });
});

test('a whole reply with too many calls is refused too', async () => {
  const calls = Array.from({ length: 1_025 }, () => ({ name: 'f', arguments: '{}' }));
  const error = await failureOf(callOnce(modelOf(await stubWith(replyCalls(calls)))));
  expect(error.message).toMatch(/more than 1024 calls; it is discarded/);
});

test('calls at the limit are read, in interleaved parts', async () => {
  const begun = many(1_024, (index) => call(index, '{"a":', `f${index}`));
  const { calls } = await read(chatApi, begun + many(1_024, (index) => call(index, '1}')) + END);
  expect(calls).toHaveLength(1_024);
  expect(calls.at(-1)).toEqual({ name: 'f1023', arguments: '{"a":1}' });
});

/** The shortest of three durations in milliseconds. */
async function quickest(work: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const began = performance.now();
    // Sequential, so that the measurements do not affect each other.
    // oxlint-disable-next-line no-await-in-loop
    await work();
    took.push(performance.now() - began);
  }
  return Math.min(...took);
}

test.each<[string, WireApi, (size: number) => string]>([
  ['one long event in small chunks', chatApi, (n) => chunk({ content: 'x'.repeat(n * 400) }) + END],
  [
    'names repeated after whole objects',
    chatApi,
    (n) =>
      chunk({ tool_calls: [{ function: { name: 'f', arguments: '{"a":[' } }] }) +
      many(n, () => chunk({ tool_calls: [{ function: { name: 'f', arguments: '{"b":{}}' } }] })) +
      END,
  ],
  [
    'white space after balanced text that is not JSON',
    chatApi,
    (n) =>
      chunk({
        tool_calls: [{ function: { name: 'f', arguments: `{"a":"${'x'.repeat(n * 50)}",}` } }],
      }) +
      many(n, () => chunk({ tool_calls: [{ function: { name: 'f', arguments: ' ' } }] })) +
      END,
  ],
  [
    'arguments that are done after each part',
    responsesApi,
    (n) =>
      item(0) +
      many(
        n,
        () =>
          event({
            type: 'response.function_call_arguments.delta',
            output_index: 0,
            delta: 'x'.repeat(99),
          }) +
          event({ type: 'response.function_call_arguments.done', output_index: 0, arguments: 'y' }),
      ) +
      response([{ type: 'function_call', name: 'f', arguments: '{}' }]),
  ],
])('reading %s takes time proportional to the stream', { retry: 2 }, async (_, api, make) => {
  const [small, large] = [make(2_000), make(16_000)];
  const once = await quickest(() => read(api, small, 1_024));
  // The stream is eight times as long; quadratic work would take sixty-four times as long.
  expect(await quickest(() => read(api, large, 1_024))).toBeLessThan(once * 28 + 100);
});

test.each([
  ['{"a":{"b":[1,"}"]}}', true],
  [' {"a":"\\"}"} \n', true],
  ['{"a":1', false],
  ['{} {', false],
  ['[1]', false],
  ['', false],
])('createObjectScanner of %j is %j, wherever it is split', (text, whole) => {
  for (let at = 0; at <= text.length; at += 1) {
    const pieces = createObjectScanner();
    pieces.add(text.slice(0, at));
    if (at < text.length) pieces.isBalanced();
    pieces.add(text.slice(at));
    expect(pieces.isBalanced()).toBe(whole);
  }
});

test('events end at CR, LF, or both, and an incomplete last event is marked', async () => {
  async function* body(text: string, at: number): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text.slice(0, at));
    yield Buffer.from(text.slice(at));
  }
  const text = 'data: a\r\ndata:b\r\n\r\n: c\revent: x\rid\rdata: d\r\rdata\n\ndata: open\n';
  for (let at = 0; at <= text.length; at += 1) {
    const data: string[] = [];
    // oxlint-disable-next-line no-await-in-loop
    for await (const each of readSse(body(text, at)))
      data.push(each.isWhole ? each.data : `${each.data}?`);
    expect(data).toEqual(['a\nb', 'd', '', 'open?']);
  }
});

test('JSON with millions of values is refused; long texts are not', () => {
  expect(() => parseBounded(`[${'[],'.repeat(1_100_000)}0]`)).toThrow(ReplyTooLargeError);
  expect(parseBounded(JSON.stringify('x'.repeat(3e6)))).toHaveLength(3e6);
});

test.each([301, 302, 303, 307, 308])(
  'a redirect (%i) is refused, and nothing is sent to its target',
  async (status) => {
    const other = await httpServer((_, answer) => void answer.end('{}'));
    onTestFinished(() => other.close());
    const location = `${other.url}/v1/chat/completions?secret=canary-query`;
    const stub = await stubWith(replyRaw('', { status, headers: { location } }));
    const error = await failureOf(callOnce(modelOf(stub)));
    expect(error.details).toMatchObject({ kind: 'model', type: 'redirected', status });
    expect(error.message).toContain(`got a redirect to ${other.url}, which is not followed`);
    expect(error.message).not.toContain('canary');
    expect([other.requests, stub.requests.length]).toEqual([0, 1]);
  },
);

test('only the beginning of an endless error is read', async () => {
  const server = await httpServer((_, answer) => {
    answer.writeHead(400, { 'content-type': 'text/plain' });
    const more = (): void => {
      while (answer.write('exceed'.repeat(10_000)));
      answer.once('drain', more);
    };
    more();
  });
  onTestFinished(() => server.close());
  const error = await failureOf(callOnce(openAiModel({ baseUrl: `${server.url}/v1` })));
  expect(error.details).toMatchObject({ kind: 'bad_request', status: 400 });
  expect(error.message).toMatch(/exceedexceed/);
});

test('reading an error takes time proportional to its length', { retry: 2 }, async () => {
  const look = async (count: number): Promise<boolean> =>
    saysContextTooLong('exceed'.repeat(count));
  const once = await quickest(() => look(2_000));
  expect(await quickest(() => look(16_000))).toBeLessThan(once * 28 + 20);
});
