import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { isAtOnce, runLoop } from '../../src/core/interpret/loop.js';
import { FIRST_MESSAGE_MS, nextAction, type Action } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { Work } from '../../src/core/state/work.js';
import { after, CANCEL, replied, update } from '../support/facts.js';
import { callReply, begun, config, textReply, SHORT } from '../support/scripts.js';

const FULL = { ...SHORT, historyEvents: 5_000 };
const typeOf = (state: RunState, segment = SHORT, now = 0): string =>
  nextAction(state, segment, now).type;
const withWork = (state: RunState, ...work: readonly Work[]): RunState => ({ ...state, work });
const open = (rest: Parameters<typeof config>[0] = {}): RunState =>
  initialState(config(rest), { open: true });
const BLOCK = { reason: 'quota', message: 'x', until: 9 } as const;
const waiting = (name: string): Work => ({ name, block: BLOCK, phase: 'waiting' });
const flying = (name: string, as: 'attempt' | 'find' = 'attempt'): Work => ({
  name,
  phase: 'in-flight',
  as,
});

describe('before its first turn', () => {
  const empty = initialState(unloadedConfig('test'));

  test('a run loads its agent and copies what it forks', () => {
    expect(typeOf(empty)).toBe('load');
    expect(typeOf({ ...open(), forks: true })).toBe('load');
    expect(typeOf(open())).toBe('await-message');
  });

  test('a run that waits for its agent moves to a new segment when this one is full', () => {
    expect(typeOf(withWork(empty, waiting('agent')), FULL)).toBe('continue-as-new');
    expect(typeOf(empty, FULL)).toBe('load');
    expect(typeOf(withWork(empty, flying('agent')), FULL)).toBe('load');
    expect(typeOf(withWork({ ...open(), forks: true }, waiting('fork')), FULL)).toBe('load');
  });

  test('a canceled run ends', () => {
    expect(nextAction(after(empty, CANCEL))).toMatchObject({
      type: 'finish',
      outcome: { status: 'cancelled' },
    });
    expect(typeOf({ ...after(open(), CANCEL), forks: true })).toBe('finish');
  });
});

describe('within a turn', () => {
  const start = begun(config());

  test('an interruption takes effect when nothing is in flight', () => {
    const off = after(start, update('cancelTurn'));
    expect(nextAction(off)).toEqual({ type: 'interrupt', by: 'cancelTurn' });
    expect(typeOf(withWork(off, flying('model')))).toBe('await-work');
    expect(typeOf(withWork(off, waiting('model')))).toBe('interrupt');
    expect(nextAction(after(off, CANCEL))).toEqual({ type: 'interrupt', by: 'cancel' });
  });

  test('a pause precedes the waiting messages, and they precede the next call', () => {
    const steered = after(start, update('ask', { message: 'x', mode: 'steer' }));
    expect(typeOf(steered)).toBe('join-messages');
    const paused = after(steered, update('pause'));
    expect(typeOf(paused)).toBe('await-resume');
    expect(typeOf(after(paused, update('resume')))).toBe('join-messages');
    const queued = after({ ...start, open: true }, update('ask', { message: 'x' }));
    expect(typeOf(queued)).toBe('call-model');
  });

  test('a full segment ends between two steps, if it can pass on all work', () => {
    expect(typeOf(start, FULL)).toBe('continue-as-new');
    expect(typeOf(withWork(start, waiting('model')), FULL)).toBe('continue-as-new');
    expect(typeOf(withWork(start, flying('model')), FULL)).toBe('call-model');
    const branch = { messages: 1, head: '', tokens: 0, promptTokens: 0 };
    expect(
      typeOf({ ...start, turn: { ...start.turn, phase: { type: 'repairing', branch } } }, FULL),
    ).toBe('call-model');
    expect(typeOf(after(start, update('pause')), FULL)).toBe('continue-as-new');
  });

  test('no segment ends for a reader, who does not know its size', () => {
    const long = { ...start, total: { ...start.total, steps: 100_000 } };
    expect(typeOf(long)).toBe('continue-as-new');
    expect(nextAction(long).type).toBe('call-model');
  });

  test('work in flight continues', () => {
    expect(nextAction(withWork(start, waiting('model')))).toMatchObject({
      type: 'call-model',
      closing: false,
    });
    const closing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'closing', reason: 'steps' } as const },
    };
    expect(nextAction(withWork(closing, waiting('model')))).toMatchObject({ closing: true });
    expect(nextAction(withWork(start, { ...waiting('model'), cut: 3 }))).toMatchObject({
      type: 'compact',
      cut: 3,
    });
    expect(nextAction(withWork(start, waiting('retrieve')))).toEqual({
      type: 'retrieve',
    });
    expect(typeOf(withWork(start, waiting('archive')))).toBe('await-work');
    expect(typeOf(withWork(after(start, update('pause')), waiting('model')))).toBe('call-model');
  });

  test('no call begins while messages are being archived for a new segment', () => {
    const called = replied(start, callReply(['look']));
    expect(typeOf(called)).toBe('run-calls');
    expect(typeOf(withWork(called, flying('archive')))).toBe('await-work');
  });

  test('a closing call is omitted if nothing is left for it', () => {
    const closing = (tokens: number): RunState => {
      const state = begun(config({ limits: { tokens } }));
      return { ...state, turn: { ...state.turn, phase: { type: 'closing', reason: 'steps' } } };
    };
    expect(nextAction(closing(5_000))).toMatchObject({ type: 'call-model', closing: true });
    expect(nextAction(closing(10))).toEqual({ type: 'end-at-limit', reason: 'steps' });
  });

  test('a limit closes the turn, or ends it if it cannot be closed', () => {
    const at = (rest: Parameters<typeof config>[0]) =>
      nextAction(replied(begun(config(rest)), callReply(['nothing'])));
    expect(at({ limits: { steps: 1 } })).toEqual({ type: 'begin-closing', reason: 'steps' });
    expect(at({ limits: { steps: 1 }, onLimit: 'compose' })).toEqual({
      type: 'end-at-limit',
      reason: 'steps',
    });
    const state = begun(config({ limits: { run: { steps: 1 } } }));
    const used = { ...state, total: { ...state.total, steps: 1 } };
    expect(nextAction(used)).toEqual({ type: 'end-at-limit', reason: 'steps' });
    const spent = { ...state.turn.spent, steps: 1 };
    expect(typeOf({ ...used, turn: { ...used.turn, spent } })).toBe('begin-closing');
    const late = { ...start, turn: { ...start.turn, limit: 'wallMs' as const } };
    expect(nextAction(late)).toEqual({ type: 'begin-closing', reason: 'wallMs' });
  });

  test('the instruction of a closing call has to be affordable too', () => {
    const closes = (tokens: number): string => {
      const state = begun(config({ limits: { tokens } }));
      const turn = { ...state.turn, failedSteps: 10 };
      return nextAction({ ...state, turn, transcript: { ...state.transcript, tokens: 0 } }).type;
    };
    expect(closes(200)).toBe('begin-closing');
    expect(closes(40)).toBe('end-at-limit');
  });

  test('documents are retrieved before anything is compacted or called', () => {
    const state = begun(config({ retrieve: { timeoutMs: 1 } }));
    expect(nextAction(state)).toEqual({ type: 'retrieve' });
    expect(typeOf({ ...state, turn: { ...state.turn, retrieved: true } })).toBe('call-model');
  });
});

describe('between turns', () => {
  const ended = replied(begun({ ...config() }), textReply('hi'));
  const recorded = (state: RunState): RunState => reduce(state, { type: 'turn-recorded', at: 0 });
  const idle = recorded({ ...ended, open: true });

  test('the outcome is recorded first; then a task run ends', () => {
    expect(nextAction(ended)).toMatchObject({ type: 'record-turn', outcome: { answer: 'hi' } });
    expect(nextAction(recorded(ended))).toMatchObject({
      type: 'finish',
      outcome: { reason: 'answer' },
    });
    expect(typeOf(withWork(recorded(ended), flying('archive')))).toBe('await-work');
  });

  test('an open run waits for messages, and begins a turn with each', () => {
    expect(typeOf(idle)).toBe('await-message');
    const asked = after(idle, update('ask', { message: 'x' }));
    expect(typeOf(asked)).toBe('begin-turn');
    expect(typeOf(after(asked, update('pause')))).toBe('await-resume');
    expect(typeOf(asked, FULL)).toBe('continue-as-new');
    expect(typeOf(after(asked, update('close')))).toBe('begin-turn');
    expect(nextAction(after(idle, update('close')))).toMatchObject({
      type: 'finish',
      outcome: { reason: 'closed' },
    });
  });

  test('a closed run with nothing left to do ends in its segment, however full that is', () => {
    const closing = after(idle, update('close'));
    expect(typeOf(closing, FULL)).toBe('finish');
    expect(typeOf(after(closing, update('pause')), FULL)).toBe('continue-as-new');
    const asked = after(after(idle, update('ask', { message: 'x' })), update('close'));
    expect(typeOf(asked, FULL)).toBe('continue-as-new');
  });

  test('a canceled task run processes its message first, so that the transcript has it', () => {
    const task = reduce(initialState(config()), {
      type: 'message-received',
      message: { id: '', text: 'go', turn: 1 },
    });
    expect(typeOf(after(task, CANCEL))).toBe('begin-turn');
    expect(typeOf(after({ ...task, open: true }, CANCEL))).toBe('finish');
    expect(nextAction(after(idle, CANCEL))).toMatchObject({ outcome: { status: 'cancelled' } });
  });

  test('the time limit of the run ends an open run', () => {
    const late = { ...after(idle, update('ask', { message: 'x' })), ending: 'wallMs' as const };
    expect(nextAction(late)).toMatchObject({
      type: 'finish',
      outcome: { status: 'stopped', reason: 'wallMs' },
    });
  });

  test('a run that never receives a message ends after an hour', () => {
    expect(FIRST_MESSAGE_MS).toBe(3_600_000);
    expect(typeOf(open(), SHORT, FIRST_MESSAGE_MS - 1)).toBe('await-message');
    expect(typeOf(open(), SHORT, FIRST_MESSAGE_MS)).toBe('close-unused');
    const later = { ...open(), startedAt: 500 };
    expect(typeOf(later, SHORT, FIRST_MESSAGE_MS)).toBe('await-message');
    expect(typeOf(idle, SHORT, FIRST_MESSAGE_MS)).toBe('await-message');
  });

  test('only a message of the next turn asks for the newest agent', () => {
    const asked = after(
      idle,
      update('ask', { message: 'x' }, 'a'),
      update('ask', { message: 'y', refresh: true }, 'b'),
    );
    expect(typeOf(asked)).toBe('begin-turn');
    expect(typeOf(after(idle, update('ask', { message: 'y', refresh: true })))).toBe(
      'refresh-agent',
    );
  });
});

test('actions that take no time are distinguished from others, and shown to the workflow', async () => {
  const request = { kind: 'limit', why: 'x', raisedAt: 0 } as const;
  const atOnce: readonly Action[] = [
    { type: 'join-messages' },
    { type: 'begin-closing', reason: 'steps' },
    { type: 'end-at-limit', reason: 'steps' },
    { type: 'interrupt', by: 'cancel' },
    { type: 'raise-requests', requests: [{ call: 'c', request }] },
    { type: 'ask-limit', request },
    { type: 'pass-time' },
    { type: 'begin-turn' },
    { type: 'close-unused' },
  ];
  expect(atOnce.filter((action) => !isAtOnce(action))).toEqual([]);
  expect(isAtOnce({ type: 'await-work' })).toBe(false);
  expect(isAtOnce({ type: 'await-decision' })).toBe(false);
  expect(isAtOnce({ type: 'check-decision' })).toBe(false);
  const run = { state: after(begun(config()), update('cancelTurn')) };
  const changed: string[] = [];
  const outcome = await runLoop(run, {
    now: () => 0,
    segment: () => SHORT,
    perform: async ({ type }) => Promise.reject(new Error(type)),
    changed: ({ type }) => changed.push(type),
  });
  expect(changed).toEqual(['interrupt', 'record-turn']);
  expect(outcome.status).toBe('cancelled');
});
