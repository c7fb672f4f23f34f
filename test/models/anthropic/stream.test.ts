// The fixtures are hand-written from the public documentation of the API, version 2026-10-21.
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { anthropicApi } from '../../../src/models/anthropic/api.js';
import type { ModelDelta, ModelReply } from '../../../src/models/model.js';
import { readAnswer } from '../../../src/models/wire/answer.js';
import { watchCall } from '../../../src/models/wire/reply-limits.js';
import { createOpenAiClient } from '../../../src/models/openai/model.js';
import { replyToError } from '../../../src/models/wire/errors.js';
import { ProviderFailure } from '../../../src/models/wire/read-error.js';
import { failureOf, place } from '../support.js';

const client = createOpenAiClient(
  { url: 'http://provider/v1', search: '' },
  {
    apiKey: undefined,
    apiKeyEnv: 'ANTHROPIC_API_KEY',
    timeoutMs: 10_000,
  },
);

async function bytesOf(name: string): Promise<Buffer> {
  return await readFile(new URL(`wire/${name}.sse`, import.meta.url));
}

async function read(
  chunks: readonly Uint8Array[],
): Promise<{ reply: ModelReply; deltas: readonly ModelDelta[] }> {
  const deltas: ModelDelta[] = [];
  const emit = (delta: ModelDelta): void => void deltas.push(delta);
  const headers = new Headers({ 'content-type': 'text/event-stream', 'request-id': 'req_011' });
  const watch = watchCall(new AbortController().signal, { timeoutMs: 10_000, idleMs: 10_000 });
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new Uint8Array(chunk));
      controller.close();
    },
  });
  const options = { api: anthropicApi, client, watch, emit, streamed: true };
  try {
    const reply = await readAnswer(new Response(body), { headers, place }, options);
    return { reply, deltas };
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error;
    return { reply: replyToError(error.failure, place), deltas };
  } finally {
    watch.stop();
  }
}

const replyOf = async (name: string): Promise<ModelReply> =>
  (await read([await bytesOf(name)])).reply;

test('reads thoughts, a text, and calls, with and without arguments', async () => {
  const { reply, deltas } = await read([await bytesOf('thinking-and-calls')]);
  expect(reply).toEqual({
    text: 'Ich schaue nach, Grüße.',
    calls: [
      { name: 'read_file', arguments: '{"path": "ä.txt"}' },
      { name: 'list_files', arguments: '{}' },
    ],
    finish: 'calls',
    requestId: 'req_011',
    usage: {
      inputTokens: 2257,
      cachedTokens: 2048,
      cacheWriteTokens: 188,
      outputTokens: 97,
      reasoningTokens: 40,
    },
    provider: {
      from: expect.stringMatching(/^[0-9a-f]{16}$/),
      items: [
        {
          type: 'thinking',
          thinking: 'The user wants two things. 🤔',
          signature: 'EqQBCkYIBxgCKkBa',
        },
        { characters: 23 },
        { call: 0 },
        { call: 1 },
      ],
    },
  });
  expect(deltas).toEqual([
    { kind: 'reasoning', text: 'The user wants ' },
    { kind: 'reasoning', text: 'two things. 🤔' },
    { kind: 'text', text: 'Ich schaue ' },
    { kind: 'text', text: 'nach, Grüße.' },
    { kind: 'call', index: 0, name: 'read_file', text: '' },
    { kind: 'call', index: 0, text: '{"path": "ä' },
    { kind: 'call', index: 0, text: '.txt"}' },
    { kind: 'call', index: 1, name: 'list_files', text: '' },
    { kind: 'call', index: 1, text: '{}' },
  ]);
});

test('keeps redacted thoughts', async () => {
  const { provider, ...reply } = await replyOf('redacted-thinking');
  expect(reply).toMatchObject({ text: 'Done.', finish: 'stop' });
  expect(provider?.items).toEqual([
    { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' },
    { characters: 5 },
  ]);
});

test.each([
  ['refusal', { text: 'I cannot', calls: [], finish: 'refused' }],
  ['refusal-without-text', { text: 'This request was declined.', finish: 'refused' }],
  ['max-tokens', { calls: [{ name: 'read_file', arguments: '{"path": "a' }], finish: 'length' }],
  ['pause-turn', { text: 'So far', calls: [], finish: 'length' }],
  ['stop-sequence', { text: 'One', finish: 'stop' }],
  ['filtered', { text: '', calls: [], finish: 'filtered' }],
])('reads the transcript %s', async (name, expected) => {
  expect(await replyOf(name)).toMatchObject(expected);
});

test.each([
  ['overloaded', { kind: 'retry', type: 'stream_error' }],
  ['rate-limited', { kind: 'retry', type: 'rate_limit' }],
])('reports the error in the transcript %s', async (name, details) => {
  expect((await failureOf(replyOf(name))).details).toMatchObject(details);
});

test.each(['thinking-and-calls', 'redacted-thinking'])(
  'the transcript %s reads the same wherever it is split',
  async (name) => {
    const bytes = await bytesOf(name);
    const whole = await read([bytes]);
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(await read(single)).toEqual(whole);
    for (let at = 1; at < bytes.length; at += 5) {
      // Thousands at once would only fill the memory.
      // oxlint-disable-next-line no-await-in-loop
      expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    }
  },
);

test.each([
  ['an event without a type', 'data: {"index":0}'],
  [
    'a delta of a block that never began',
    'data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}',
  ],
  ['a block that is a text', 'data: {"type":"content_block_start","index":9,"content_block":"x"}'],
  ['a delta that is a list', 'data: {"type":"content_block_delta","index":1,"delta":["x"]}'],
  [
    'a block that begins again',
    'data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"!"}}',
  ],
  [
    'a delta after its block',
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"!"}}',
  ],
  ['null', 'data: null'],
  ['another usage', 'data: {"type":"message_delta","usage":"many"}'],
])('a stream with %s in its middle reads as without it', async (_what, event) => {
  const parts = (await bytesOf('thinking-and-calls')).toString().split('\n\n');
  const rubbish = [...parts.slice(0, 10), event, ...parts.slice(10)].join('\n\n');
  const { reply } = await read([Buffer.from(rubbish)]);
  expect(reply).toEqual(await replyOf('thinking-and-calls'));
});

test('a stream of broken JSON is not a reply', async () => {
  const error = await failureOf(read([Buffer.from('event: ping\ndata: {"type":\n\n')]));
  expect(error.details).toMatchObject({ kind: 'retry', type: 'bad_sse' });
});

test.each<[string, unknown, readonly unknown[]]>([
  ['in parts', {}, ['{"key":', '"a"}']],
  ['again as a whole', {}, ['{"key":', '"a"}', '{"key":"a"}']],
  ['behind an empty object', {}, ['{}', '{"key":"a"}']],
  ['as growing texts', {}, ['{"key":', '{"key":"a"}']],
  ['as objects', {}, [{}, { key: 'a' }]],
  ['at the begin of the block', { key: 'a' }, []],
  ['at the begin of the block, and again', { key: 'a' }, ['{"key":"a"}']],
])('arguments that a server sends %s are those of one call', async (_, input, parts) => {
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const message = { id: 'm', type: 'message', role: 'assistant', content: [], usage: {} };
  const block = { type: 'tool_use', id: 't1', name: 'lookup', input };
  const events = [
    event('message_start', { message }),
    event('content_block_start', { index: 0, content_block: block }),
    ...parts.map((part) =>
      event('content_block_delta', {
        index: 0,
        delta: { type: 'input_json_delta', partial_json: part },
      }),
    ),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }),
    event('message_stop', {}),
  ];
  const { reply } = await read([Buffer.from(events.join(''))]);
  const calls = reply.calls.map((one) => ({ ...one, arguments: JSON.parse(one.arguments) }));
  expect(calls).toEqual([{ name: 'lookup', arguments: { key: 'a' } }]);
});
