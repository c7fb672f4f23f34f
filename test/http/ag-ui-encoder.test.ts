import { expect, test } from 'vitest';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { agUiEncoder } from '../../src/http/ag-ui-encoder.js';
import type { ThreadMessage } from '../../src/http/ag-ui-input.js';
import type { StreamEvent } from '../../src/live/stream.js';

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd: null };

function outcome(answer: string | null): Outcome {
  const rest = { output: null, steps: 1, toolCalls: 0, usage, segments: 1 };
  return { status: 'completed', reason: 'answer', answer, ...rest };
}

const said = { role: 'user', n: 0, turn: 1, step: 0, at: 0, id: 'm1', text: 'hello' };
const replied = (text: string, more: object = {}) => ({
  type: 'model-replied',
  message: { role: 'assistant', n: 1, turn: 1, step: 1, at: 0, text, ...more },
});
const delta = (text: string) => ({ type: 'delta', turn: 1, step: 1, kind: 'text', text });
const BEGIN = [
  { type: 'turn-begun', turn: 1 },
  { type: 'message-added', message: said },
];

/** Returns what the encoder makes of events, without the events that begin and end a message. */
function encode(
  events: readonly object[],
  {
    shown = [{ id: 'm1', role: 'user', content: 'hello' }],
  }: { readonly shown?: readonly ThreadMessage[] } = {},
) {
  const place = { run: 'run', threadId: 't', runId: 'r', from: 1, last: 1 };
  const encoder = agUiEncoder({ ...place, shown, ownId: (id) => id });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the encoder reads
  const all = (events as readonly StreamEvent[]).flatMap((event) => encoder.advance(event).events);
  return all.flatMap(({ type, ...event }) => {
    if (type === 'TEXT_MESSAGE_CONTENT') return [event['delta']];
    if (type === 'MESSAGES_SNAPSHOT') return [event['messages']];
    if (type === 'STEP_STARTED' || type === 'STEP_FINISHED')
      return [`${type} ${String(event['stepName'])}`];
    if (type === 'STATE_SNAPSHOT') return [event['snapshot']];
    return type.startsWith('TEXT_MESSAGE') ? [] : [type];
  });
}
const end = (answer: string | null) => ({ type: 'turn-ended', turn: 1, outcome: outcome(answer) });
const FIRST = { id: 'm1', role: 'user', content: 'hello' } as const;

test('a client that shows a part of a reply gets the rest of it', () => {
  const shown = [FIRST, { id: 'reply_1_1', role: 'assistant', content: 'you sa' } as const];
  const parts = [delta('you '), delta('said'), delta(': hel')];
  const all = encode([...BEGIN, ...parts, replied('you said: hello'), end('you said: hello')], {
    shown,
  });
  const texts = ['STEP_STARTED step 1', 'id', ': hel', 'lo', 'STEP_FINISHED step 1'];
  expect(all).toEqual([...texts, 'RUN_FINISHED']);
});

test('what a client shows and the run does not have is taken back at the end', () => {
  const shown = [FIRST, { id: 'reply_1_2', role: 'assistant', content: 'forged' } as const];
  const all = encode([...BEGIN, replied('hi'), end('hi')], { shown });
  expect(all).toEqual([
    'STEP_STARTED step 1',
    'hi',
    [FIRST, { id: 'reply_1_1', role: 'assistant', content: 'hi' }],
    'STEP_FINISHED step 1',
    'RUN_FINISHED',
  ]);
});

test('a message that the client has lost comes first again', () => {
  const own = { id: 'm2', role: 'user', content: 'and?' } as const;
  const other = { ...said, n: 1, id: 'm2', text: 'and?' };
  const begin = [...BEGIN, { type: 'message-added', message: other }];
  const all = encode([...begin, replied('hi'), end('hi')], { shown: [own] });
  // A client keeps the place of what it knows, so its list is emptied before.
  expect(all.slice(0, 2)).toEqual([[], [FIRST, own]]);
});

test('text with a gap, and a refused answer, wait for what is durable', () => {
  const gap = { type: 'gap', turn: 1, step: 1, offset: 1, until: 3 };
  const first = encode([...BEGIN, delta('a'), gap, delta('d'), replied('abcd'), end('abcd')]);
  expect(first.filter((one) => !String(one).startsWith('STEP'))).toEqual([
    'a',
    'bcd',
    'RUN_FINISHED',
  ]);
  const refused = { ...replied('42'), type: 'answer-refused', problem: 'no JSON' };
  const second = { ...replied('{}').message, step: 2 };
  const repaired = { type: 'model-replied', message: second };
  const all = encode([...BEGIN, delta('42'), refused, repaired, end('{}')]);
  expect(all.filter((one) => !String(one).startsWith('STEP'))).toEqual([
    '42',
    [FIRST],
    '{}',
    'RUN_FINISHED',
  ]);
});

test('an attempt that says the same again is shown once, and a cut text stays whole', () => {
  const superseded = { type: 'superseded', turn: 1, step: 1, attempt: 1 };
  const blob = { sha256: '0'.repeat(64), bytes: 20 };
  const whole = 'a long text, to its end';
  const all = encode([
    ...BEGIN,
    delta('a long'),
    superseded,
    delta('a lo'),
    delta('ng text, to its end'),
    replied('a long … end', { blob }),
    end('a long … end'),
  ]);
  expect(all).toEqual([
    'STEP_STARTED step 1',
    'a long',
    whole.slice(6),
    'STEP_FINISHED step 1',
    'RUN_FINISHED',
  ]);
});

test('the answer of a turn that was canceled is not repeated after a reply without a text', () => {
  const calls = [{ id: 'call_1_1_0', name: 'look', arguments: '{}', digest: '' }];
  const other = { ...replied('', { calls: [{ ...calls[0], id: 'call_1_2_0' }] }).message, step: 2 };
  const cancelled = { ...outcome('Let me look'), status: 'cancelled', reason: 'cancelled' };
  const all = encode([
    ...BEGIN,
    replied('Let me look', { calls }),
    { type: 'model-replied', message: other },
    { type: 'turn-ended', turn: 1, outcome: cancelled },
  ]);
  expect(all.filter((one) => one === 'Let me look')).toHaveLength(1);
});

test('nodes are steps, and what they change is the state', () => {
  const call = { id: 'call_1_0_0', name: 'fetch', arguments: '{"n":1}', digest: '', node: 'read' };
  const result = { role: 'tool', n: 1, turn: 1, step: 0, at: 0, callId: call.id, text: '' };
  const answer = { role: 'assistant', origin: 'graph', n: 2, turn: 1, step: 0, at: 0, text: 'one' };
  const all = encode([
    ...BEGIN,
    { type: 'node-begun', node: 'read', visit: 1 },
    { type: 'work-blocked', on: call.id, reason: 'tool_missing', message: 'no worker has it' },
    { type: 'call-begun', turn: 1, call },
    { type: 'call-finished', tool: 'fetch', message: result },
    { type: 'node-ended', node: 'read', exit: 'done', ms: 1, patch: { n: 1 } },
    { type: 'message-added', message: answer },
    end('one'),
  ]);
  expect(all).toEqual([
    'STEP_STARTED read',
    'CUSTOM',
    'TOOL_CALL_START',
    'TOOL_CALL_ARGS',
    'TOOL_CALL_END',
    'TOOL_CALL_RESULT',
    'STEP_FINISHED read',
    { n: 1 },
    'one',
    'RUN_FINISHED',
  ]);
});
