import { describe, expect, test } from 'vitest';
import type { Request } from '../../src/core/transcript/request.js';
import { type Answers, NO_ANSWERS, uiEncoder } from '../../src/http/ui-encoder.js';
import type { StreamEvent } from '../../src/live/stream.js';

const CALL = 'call_1_1_0';
const raised = (id: string, kind: string, call?: string) => ({
  type: 'request-raised',
  request: id,
  kind,
  call,
  why: 'a rule',
});

/** Returns an open request; `fields` are those that matter. */
function request(fields: Partial<Request>): Request {
  const decisions = ['approve', 'deny', 'edit', 'answer'] as const;
  const about = { id: 'r1', kind: 'approval', call: CALL, tool: 'pay', arguments: '{"euros":7}' };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
  return { ...about, digest: 'd', decisions, ...fields } as Request;
}

/** Returns an encoder that has read events, and their chunks. */
function read(turn: number, events: readonly object[], answers: Answers = NO_ANSWERS) {
  const encoder = uiEncoder(turn, answers);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
  const all = events as readonly StreamEvent[];
  return { encoder, chunks: all.flatMap((event) => encoder.advance(event).chunks) };
}

const typesOf = (chunks: readonly { readonly type: string }[]) => chunks.map(({ type }) => type);

describe('a request that is open when a turn waits', () => {
  test('is offered with its call if it is about an earlier turn, whose message the client may lack', () => {
    const { encoder } = read(2, [raised('r1', 'approval', CALL)]);
    expect(encoder.asks()).toBe(true);
    expect(encoder.wait([request({})], 'run')).toEqual([
      { type: 'start-step' },
      {
        type: 'tool-input-available',
        toolCallId: CALL,
        toolName: 'pay',
        dynamic: true,
        providerExecuted: true,
        input: { euros: 7 },
      },
      { type: 'tool-approval-request', approvalId: 'r1.d', toolCallId: CALL },
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'tool-calls' },
    ]);
  });

  test('is answered in the message that shows it, with the result of its call', () => {
    const message = { role: 'tool', turn: 1, callId: CALL, text: 'paid 7' };
    const events = [
      raised('r1', 'approval', CALL),
      { type: 'request-closed', request: 'r1', as: 'approve' },
      { type: 'call-finished', tool: 'pay', message },
    ];
    const { chunks } = read(2, events, { requests: ['r1'], calls: [CALL] });
    const output = 'paid 7';
    expect(chunks).toEqual([
      { type: 'tool-output-available', toolCallId: CALL, dynamic: true, output },
    ]);
    // A message that does not show the call gets nothing about it.
    expect(read(2, events).chunks).toEqual([]);
  });

  test('is an error with its name if the client can answer none', () => {
    const undo = request({ decisions: ['approve', 'deny'] });
    const { call: _, ...limit } = request({ kind: 'limit' });
    const all: readonly Request[] = [
      request({ kind: 'question' }),
      request({ kind: 'plan' }),
      undo,
      limit,
    ];
    for (const one of all) {
      const { encoder } = read(1, [raised(one.id, one.kind, one.call)]);
      expect(encoder.asks()).toBe(true);
      const [error, ...rest] = encoder.wait([one], 'run-7');
      const named = `got r1 (${one.kind}) of run run-7; decide it in the console`;
      expect(error).toEqual({ type: 'error', errorText: expect.stringContaining(named) });
      expect(typesOf(rest)).toEqual(['finish']);
    }
    const check = request({ kind: 'safety_check', decisions: ['approve', 'deny'] });
    const { encoder } = read(1, [raised('r1', 'safety_check', CALL)]);
    expect(typesOf(encoder.wait([check], 'run'))).toContain('tool-approval-request');
  });

  test('does not end a call that never gets a result without a word', () => {
    const answers = { requests: ['r1'], calls: [CALL] };
    const { encoder } = read(1, [raised('r1', 'approval', CALL)], answers);
    const outcome = { status: 'cancelled', answer: null };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
    const ended = { type: 'turn-ended', turn: 1, outcome } as StreamEvent;
    expect(typesOf(encoder.advance(ended).chunks)).toEqual(['tool-output-error', 'finish']);
  });
});

describe('the text parts of a turn', () => {
  const place = { turn: 1, step: 1, attempt: 1 };
  const delta = (text: string) => ({ ...place, type: 'delta', kind: 'text', text });
  const replied = (text: string, more: object = {}) => ({
    type: 'model-replied',
    message: { role: 'assistant', n: 1, turn: 1, step: 1, at: 0, text, ...more },
  });

  /** Returns the text parts that the encoder makes of events. */
  function partsOf(events: readonly object[]): readonly string[] {
    const encoder = uiEncoder(1, NO_ANSWERS);
    const texts = new Map<unknown, string>();
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
    for (const event of events as readonly StreamEvent[]) {
      for (const { type, id, delta: text } of encoder.advance(event).chunks) {
        if (type === 'text-delta') texts.set(id, (texts.get(id) ?? '') + String(text));
      }
    }
    return [...texts.values()];
  }

  test('are not repeated by the answer of a turn that was canceled', () => {
    const outcome = { status: 'cancelled', answer: 'Let me look' };
    const ended = { type: 'turn-ended', turn: 1, outcome };
    const calls = [{ id: 'call_1_1_0', name: 'look', arguments: '{}' }];
    const replies = [replied('Let me look', { calls }), replied('', { calls })];
    expect(partsOf([...replies, ended])).toEqual(['Let me look']);
    const refused = { ...replied('42'), type: 'answer-refused', problem: 'no JSON' };
    expect(partsOf([replied('Let me look', { calls }), refused, ended])).toEqual(['Let me look']);
  });

  test('wait after a gap for what is durable', () => {
    const gap = { ...place, type: 'gap', offset: 1, until: 3 };
    expect(partsOf([delta('a'), gap, delta('d'), replied('abcd')])).toEqual(['abcd']);
    const superseded = { ...place, type: 'superseded' };
    const again = [delta('a'), gap, delta('d'), superseded, delta('ab'), replied('abc')];
    expect(partsOf(again)).toEqual(['abc']);
  });

  test('are not doubled by the head and tail of a long text', () => {
    const blob = { sha256: '0'.repeat(64), bytes: 20 };
    const whole = 'a long text, to its end';
    expect(partsOf([delta(whole), replied('a long … end', { blob })])).toEqual([whole]);
    expect(partsOf([delta('a long'), replied('a long … end', { blob })])).toEqual(['a long … end']);
  });
});
