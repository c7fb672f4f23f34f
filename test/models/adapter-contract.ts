import { afterEach, describe, expect, test } from 'vitest';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import type {
  ModelDelta,
  Model,
  ModelReply,
  ModelUsage,
  ModelErrorDetails,
} from '../../src/models/model.js';
import { assistantCalls, failureOf, request } from './support.js';

/** How a provider answers one request, in any wire format. */
export type Scene =
  | {
      readonly type: 'reply';
      readonly text?: string;
      /** A string is sent verbatim. */
      readonly calls?: readonly { readonly name: string; readonly arguments: object | string }[];
      readonly finish?: 'length' | 'filtered' | 'refused';
      /** Null: the provider reports no usage. */
      readonly usage?: ModelUsage | null;
      readonly reasoning?: string;
      /** Waits at this barrier: before anything is sent, or after the headers. */
      readonly holdBeforeHeaders?: string;
      readonly holdAfterHeaders?: string;
      /** Cuts the answer in the middle: an orderly end, or a reset connection. */
      readonly cut?: 'end' | 'reset';
    }
  | {
      readonly type: 'error';
      readonly status: number;
      readonly error?: { readonly message?: string; readonly code?: string };
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** A body with status 200. */
  | { readonly type: 'raw'; readonly body: string; readonly contentType?: string }
  | { readonly type: 'reset' };

/** A provider's server under the control of a test. */
export interface Wire {
  readonly requestCount: number;
  script(scenes: readonly Scene[]): void;
  /** Resolves when an answer waits at this barrier. */
  reached(barrier: string): Promise<void>;
  /** Resolves when the client of the newest request disconnects before it is answered. */
  abandoned(): Promise<void>;
  close(): Promise<void>;
}

export interface AdapterUnderTest<W extends Wire = Wire> {
  wire(): Promise<W>;
  model(wire: W, options: { readonly timeoutMs: number; readonly idleMs: number }): Model;
  /** Whether calls have a listener, so that replies are streamed. */
  readonly watched: boolean;
  /** The features that the protocol lacks; they are not tested. */
  readonly lacks?: readonly ('rubbish' | 'filtered' | 'refused' | 'quota' | 'cached' | 'usage')[];
}

const KEY = 'canary-key-1234';
const USAGE: ModelUsage = { inputTokens: 90, outputTokens: 12, cachedTokens: 64 };
const SAID = 'Grüße, ich schaue nach. 🙂 Ende';
const CALLS = [
  { name: 'read_file', arguments: { path: 'ä/"b".txt' } },
  { name: 'read_file', arguments: { path: 'c.txt' } },
  { name: 'list_files', arguments: {} },
];
const tools = ['read_file', 'list_files'].map((name) => ({
  name,
  description: 'Does it.',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
}));
const earlier: readonly PromptMessage[] = [
  { role: 'user', text: 'hello' },
  assistantCalls({ id: 'call_1_1_0', name: 'read_file', arguments: '{"path":"a"}' }),
  { role: 'tool', callId: 'call_1_1_0', text: 'it says b' },
  { role: 'assistant', text: 'It says b.' },
  { role: 'user', text: 'and now?' },
];

/** Joins deltas as the contract describes. */
function joined(deltas: readonly ModelDelta[]): Pick<ModelReply, 'text' | 'calls'> {
  const calls: { name: string; arguments: string }[] = [];
  for (const delta of deltas) {
    if (delta.kind !== 'call') continue;
    const call = (calls[delta.index] ??= { name: '', arguments: '' });
    call.name += delta.name ?? '';
    call.arguments += delta.text;
  }
  const text = deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');
  return { text, calls };
}

/** Tests the contract of `Model` for an adapter. */
export function describeAdapter<W extends Wire>(name: string, adapter: AdapterUnderTest<W>): void {
  const { watched, lacks = [] } = adapter;
  let wire: W;

  async function play(scenes: readonly Scene[], limits = { timeoutMs: 20_000, idleMs: 20_000 }) {
    wire = await adapter.wire();
    wire.script(scenes);
    const model = adapter.model(wire, limits);
    const deltas: ModelDelta[] = [];
    const call = async (signal = new AbortController().signal): Promise<ModelReply> => {
      deltas.length = 0;
      const onDelta = (delta: ModelDelta): void => void deltas.push(delta);
      return await model.call(request({ messages: earlier, tools }), {
        signal,
        ...(watched && { onDelta }),
      });
    };
    return { model, call, deltas };
  }

  const replyTo = async (scene: Scene): Promise<ModelReply> => {
    const { call, deltas } = await play([scene]);
    const reply = await call();
    if (watched) expect(joined(deltas)).toEqual({ text: reply.text, calls: reply.calls });
    return reply;
  };

  /** Declares a test unless the protocol lacks the feature. */
  const testOf = (
    what: NonNullable<typeof adapter.lacks>[number],
  ): ((title: string, body: () => Promise<void>) => void) =>
    lacks.includes(what) ? () => undefined : test;

  describe(`the adapter for ${name}`, () => {
    afterEach(async () => {
      await wire?.close();
    });

    test('reads a text and its usage', async () => {
      const usage = lacks.includes('cached') ? { ...USAGE, cachedTokens: 0 } : USAGE;
      expect(await replyTo({ type: 'reply', text: SAID, usage })).toMatchObject({
        text: SAID,
        calls: [],
        finish: 'stop',
        usage,
      });
    });

    testOf('usage')('leaves usage out if the provider does', async () => {
      const reply = await replyTo({ type: 'reply', text: 'hi', usage: null });
      expect(reply).not.toHaveProperty('usage');
    });

    test.each([
      ['calls alone', ''],
      ['calls with a text', SAID],
    ])('reads %s, in their order', async (_what, text) => {
      const reply = await replyTo({ type: 'reply', text, calls: CALLS });
      expect(reply).toMatchObject({ text, finish: 'calls' });
      expect(
        reply.calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) })),
      ).toEqual(CALLS);
    });

    testOf('rubbish')('passes on arguments that are not JSON unchanged', async () => {
      const rubbish = '{"path": "a", oops';
      const calls = [{ name: 'read_file', arguments: rubbish }];
      expect((await replyTo({ type: 'reply', calls })).calls).toEqual(calls);
    });

    test('keeps reasoning out of the text', async () => {
      const reply = await replyTo({ type: 'reply', text: SAID, reasoning: 'Hm, hm.' });
      expect(reply.text).toBe(SAID);
    });

    test('reports that the output limit truncated the reply', async () => {
      const reply = await replyTo({ type: 'reply', text: 'Half a', finish: 'length' });
      expect(reply).toMatchObject({ text: 'Half a', finish: 'length' });
    });

    testOf('filtered')(
      'reports that the filter withheld the reply, and drops its calls',
      async () => {
        const reply = await replyTo({ type: 'reply', text: 'Hm', finish: 'filtered' });
        expect(reply).toMatchObject({ calls: [], finish: 'filtered' });
      },
    );

    testOf('refused')('reports a refusal in the words of the model', async () => {
      const reply = await replyTo({ type: 'reply', text: 'Never.', finish: 'refused' });
      expect(reply).toMatchObject({ text: 'Never.', calls: [], finish: 'refused' });
    });

    test('ignores a listener that throws', async () => {
      const { model } = await play([{ type: 'reply', text: SAID, calls: CALLS }]);
      const reply = await model.call(request({ messages: earlier, tools }), {
        signal: new AbortController().signal,
        onDelta() {
          throw new Error('the watcher is at fault');
        },
      });
      expect(reply).toMatchObject({ text: SAID, finish: 'calls' });
    });

    test('makes no request for a signal that has aborted', async () => {
      const { call } = await play([]);
      const reason = new Error('cancelled before');
      await expect(call(AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(wire.requestCount).toBe(0);
    });

    test.each(['holdBeforeHeaders', 'holdAfterHeaders'] as const)(
      'stops at once when the signal aborts, at %s',
      async (hold) => {
        const { call } = await play([{ type: 'reply', text: 'never', [hold]: 'gate' }]);
        const controller = new AbortController();
        const reason = new Error('cancelled');
        const end = call(controller.signal).catch((error: unknown) => error);
        await wire.reached('gate');
        controller.abort(reason);
        expect(await end).toBe(reason);
        await wire.abandoned();
      },
    );

    type Row = readonly [string, Scene, Partial<ModelErrorDetails>];
    const error = (status: number, rest: object = {}): Scene => ({
      type: 'error',
      status,
      ...rest,
    });
    const html = '<html>Sign in</html>';
    const rows: readonly Row[] = [
      ['401', error(401), { kind: 'credentials', status: 401 }],
      ['403', error(403), { kind: 'credentials', status: 403 }],
      ['404', error(404), { kind: 'model', status: 404 }],
      [
        '429 with Retry-After',
        error(429, { headers: { 'retry-after': '2' } }),
        { kind: 'retry', status: 429, retryAfterMs: 2_000 },
      ],
      ['500', error(500), { kind: 'retry', status: 500 }],
      ['503 with a page', error(503, { error: { message: html } }), { kind: 'retry', status: 503 }],
      ['a reset connection', { type: 'reset' }, { kind: 'retry' }],
      ['an answer cut short', { type: 'reply', text: SAID, cut: 'end' }, { kind: 'retry' }],
      ['an answer reset midway', { type: 'reply', text: SAID, cut: 'reset' }, { kind: 'retry' }],
      ['a page', { type: 'raw', body: html, contentType: 'text/html' }, { kind: 'retry' }],
      ['garbage', { type: 'raw', body: '{"a":' }, { kind: 'retry' }],
      ['another JSON', { type: 'raw', body: '{"a":1}' }, { kind: 'retry' }],
      ['an empty reply', { type: 'reply', text: '' }, { kind: 'empty' }],
    ];
    test.each(rows)('classifies %s', async (_what, scene, details) => {
      const { call } = await play([scene]);
      const failure = await failureOf(call());
      expect(failure.details).toMatchObject(details);
      expect(failure.message).not.toContain(KEY);
      expect(wire.requestCount).toBe(1);
    });

    testOf('quota')('distinguishes an exhausted quota from a rate limit', async () => {
      const { call } = await play([error(429, { error: { code: 'insufficient_quota' } })]);
      expect((await failureOf(call())).details.kind).toBe('quota');
    });

    test('ends a call whose answer stalls', async () => {
      const held: Scene = { type: 'reply', text: 'late', holdAfterHeaders: 'never' };
      const { call } = await play([held], { timeoutMs: watched ? 20_000 : 150, idleMs: 30 });
      const { details } = await failureOf(call());
      expect(details).toMatchObject({ kind: 'retry', type: watched ? 'idle' : 'timeout' });
    });
  });
}
