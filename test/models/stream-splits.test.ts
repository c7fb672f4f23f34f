import { expect, test } from 'vitest';
import { watchCall } from '../../src/models/wire/reply-limits.js';
import type { ModelDelta } from '../../src/models/model.js';
import { readAnswer } from '../../src/models/wire/answer.js';
import { anthropicApi } from '../../src/models/anthropic/api.js';
import { chatApi } from '../../src/models/openai/chat/index.js';
import { createOpenAiClient } from '../../src/models/openai/model.js';
import { responsesApi } from '../../src/models/openai/responses/reply.js';
import { replyCalls, replyText, type SseOptions } from '../../src/testing/replies.js';
import { place, stubWith } from './support.js';

const APIS = [
  ['Chat Completions', chatApi, { messages: [] }],
  ['Responses', responsesApi, { input: 'x', include: ['reasoning.encrypted_content'] }],
  [
    'Messages',
    anthropicApi,
    { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] },
  ],
] as const;
type Api = (typeof APIS)[number][1];

/** Anthropic's API requires both. */
const HEADERS = { 'x-api-key': 'canary-key-1234', 'anthropic-version': '2026-10-21' };

const client = createOpenAiClient(
  { url: 'http://provider/v1', search: '' },
  {
    apiKey: undefined,
    apiKeyEnv: 'OPENAI_API_KEY',
    timeoutMs: 10_000,
  },
);

/** What a stream contains at the point where the answer is complete. */
const ENDS = new Map<Api, string>([
  [chatApi, '"finish_reason":"tool_calls"'],
  [responsesApi, 'event: response.completed'],
  [anthropicApi, 'event: message_delta'],
]);

const CALLS = [{ name: 'read_file', arguments: { path: 'ä🙂' } }];
const CALLED = [{ name: 'read_file', arguments: '{"path":"ä🙂"}' }];

/** Returns the bytes of a streamed answer of the stub. */
async function bytesOf(api: Api, body: object, sse: SseOptions): Promise<Uint8Array> {
  const stub = await stubWith(replyCalls(CALLS, { text: 'Grüße 🙂', reasoning: '🤔', sse }));
  const response = await fetch(stub.baseUrl + api.path, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ ...body, stream: true }),
  });
  return new Uint8Array(await response.arrayBuffer());
}

async function read(api: Api, chunks: readonly Uint8Array[]) {
  const deltas: ModelDelta[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const headers = new Headers({ 'content-type': 'text/event-stream' });
  const watch = watchCall(new AbortController().signal, { timeoutMs: 10_000, idleMs: 10_000 });
  try {
    const answer = await readAnswer(
      new Response(body, { headers }),
      { headers, place },
      {
        api,
        client,
        watch,
        emit: (delta) => void deltas.push(delta),
        streamed: true,
      },
    );
    return { answer, deltas };
  } finally {
    watch.stop();
  }
}

for (const [name, api, body] of APIS) {
  test(`a stream of ${name} reads the same wherever it is split`, async () => {
    const plain = await bytesOf(api, body, {});
    const bytes = await bytesOf(api, body, { lineEnd: '\r\n', comments: true });
    const whole = await read(api, [plain]);
    expect(whole.answer).toMatchObject({ text: 'Grüße 🙂', calls: CALLED, finish: 'calls' });
    // The events are alike, so each kind of place is among these; below, every byte is alone.
    for (let at = 1; at < bytes.length; at += 23) {
      // Thousands at once would only fill the memory.
      // oxlint-disable-next-line no-await-in-loop
      expect(await read(api, [bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    }
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(await read(api, single)).toEqual(whole);
  });

  test(`a stream of ${name} that stops at any byte before its end is never a reply`, async () => {
    const bytes = await bytesOf(api, body, { charactersPerEvent: 9 });
    const text = Buffer.from(bytes).toString('latin1');
    // The answer is complete from the finish reason on.
    const end = text.indexOf(ENDS.get(api) ?? '');
    expect(end).toBeGreaterThan(100);
    const cuts = Array.from({ length: Math.floor(end / 23) }, (_, index) => index * 23);
    const outcomes = await Promise.all(
      cuts.map((at) => read(api, [bytes.subarray(0, at)]).then(() => 'a reply', failureType)),
    );
    expect(new Set(outcomes)).toEqual(new Set(['stream_cut']));
  });

  const megabytes = api === chatApi ? 10 : 2;

  test(`${megabytes} MB of small deltas of ${name} arrive whole`, async () => {
    const size = megabytes * 1024 * 1024;
    const text = 'äbcd '.repeat(megabytes * 6_000);
    const stub = await stubWith(replyText(text, { sse: { charactersPerEvent: 3 } }));
    const response = await fetch(stub.baseUrl + api.path, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify({ ...body, stream: true }),
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect(bytes.length).toBeGreaterThan(size);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 16_384) }, (_, index) =>
      bytes.subarray(index * 16_384, (index + 1) * 16_384),
    );
    const { answer, deltas } = await read(api, chunks);
    expect(answer.text).toBe(text);
    expect(deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('')).toBe(text);
  });
}

function failureType(error: { details?: { type: string } }): string {
  return error.details?.type ?? 'another error';
}
