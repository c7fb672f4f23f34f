import { describe, expect, test } from 'vitest';
import { apply, toEvents, record, type Run } from '../../src/core/interpret/loop.js';
import { nextAction } from '../../src/core/run/next-action.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { composeAnswer } from '../../src/core/rules/documents.js';
import { reduce } from '../../src/core/run/reduce.js';
import { RECENT_CHARACTERS, type RunState } from '../../src/core/state/state.js';
import {
  after,
  CANCEL,
  completed,
  failed,
  model,
  replied,
  scheduled,
  update,
} from '../support/facts.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { isRepairing, getOutcome } from '../../src/core/state/turn.js';

const start = begun(config());
const open: RunState = { ...start, open: true };
/** Ends the current turn with this answer, and begins the next one. */
function answered(state: RunState, text: string): RunState {
  const over = reduce(replied(state, textReply(text)), { type: 'turn-recorded', at: 0 });
  const asked = after(over, update('ask', { message: 'next' }, `ask ${state.turn.number}`));
  return reduce(asked, { type: 'turn-begun', at: 5 });
}

describe('the turns that a run remembers', () => {
  test('are the newest ten', () => {
    let state = open;
    for (let n = 1; n <= 12; n += 1) state = answered(state, `answer ${n}`);
    expect(state.recent.map(({ turn }) => turn)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(state.recent[0]?.outcome.answer).toBe('answer 3');
    expect(state.turn).toMatchObject({ number: 13, startedAt: 5, phase: { type: 'deciding' } });
  });

  test('have 64 KiB together at most, and the newest may be omitted', () => {
    const long = 'x'.repeat(RECENT_CHARACTERS / 2);
    const two = answered(answered(open, long), 'short');
    expect(two.recent.map(({ turn }) => turn)).toEqual([1, 2]);
    const three = answered(answered(two, 'short'), long);
    expect(three.recent.map(({ turn }) => turn)).toEqual([2, 3, 4]);
    expect(answered(open, long + long).recent).toEqual([]);
    const outcome = JSON.stringify(getOutcome(replied(open, textReply('')))).length;
    expect(answered(open, 'x'.repeat(RECENT_CHARACTERS - outcome)).recent).toHaveLength(1);
    expect(answered(open, 'x'.repeat(RECENT_CHARACTERS - outcome + 1)).recent).toEqual([]);
  });

  test('contain no work and no interruption', () => {
    const state = after(start, scheduled(model()), CANCEL, completed(model(), textReply('late')));
    const stopped = { ...state, turn: { ...state.turn, interruption: 'wallMs' as const } };
    const over = reduce(
      { ...stopped, work: [{ name: 'x', phase: 'waiting' }] },
      { type: 'turn-recorded', at: 0 },
    );
    expect([over.work, over.turn.phase.type]).toEqual([[], 'idle']);
    expect(over.turn).not.toHaveProperty('interruption');
  });

  test('include the messages that arrived too late for a call of their own', () => {
    const steered = after(replied(open, textReply('hi')), update('ask', { message: 'next' }));
    const late = {
      ...steered,
      inbox: { ...steered.inbox, waiting: [{ id: 'm', text: 'late', turn: 1 }] },
    };
    const over = reduce(late, { type: 'turn-recorded', at: 9 });
    expect(over.transcript.messages.at(-1)).toMatchObject({
      text: 'late',
      turn: 1,
      at: 9,
      id: 'm',
    });
    const unfinished = reduce(
      { ...open, turn: { ...open.turn, phase: { type: 'idle', outcome: null } } },
      { type: 'turn-recorded', at: 0 },
    );
    expect(unfinished.recent).toEqual([]);
  });
});

describe('messages that join a turn', () => {
  test('have all fields that their sender set', () => {
    const attachments = [{ type: 'image', url: 'https://x.test/a.png' }] as const;
    const ask = { message: 'x', mode: 'steer', pin: true, by: 'ann', id: 'm', attachments };
    const state = reduce(after(start, update('ask', ask)), { type: 'messages-joined', at: 9 });
    expect(state.transcript.messages.at(-1)).toEqual({
      n: 1,
      turn: 1,
      step: 0,
      at: 9,
      role: 'user',
      text: 'x',
      attachments,
      id: 'm',
      pinned: true,
      by: 'ann',
    });
    expect(state.inbox.waiting).toEqual([]);
    const plain = reduce(after(start, update('ask', { message: 'x', mode: 'steer' }, 'm')), {
      type: 'messages-joined',
      at: 9,
    });
    expect(plain.transcript.messages.at(-1)).toEqual({
      n: 1,
      turn: 1,
      step: 0,
      at: 9,
      role: 'user',
      text: 'x',
      id: 'm',
    });
  });

  test('set the settings of the turn, of which the newest count', () => {
    const join = (state: RunState, id: string, rest: object): RunState =>
      reduce(after(state, update('ask', { message: 'x', mode: 'steer', ...rest }, id)), {
        type: 'messages-joined',
        at: 9,
      });
    const first = join(start, 'a', { settings: { temperature: 0, seed: 1 } });
    expect(first.turn.settings).toEqual({ temperature: 0, seed: 1 });
    const second = join(first, 'b', { settings: { seed: 2 } });
    expect(second.turn.settings).toEqual({ temperature: 0, seed: 2 });
    expect(join(second, 'c', {}).turn.settings).toEqual({ temperature: 0, seed: 2 });
    expect(join(start, 'd', {}).turn).not.toHaveProperty('settings');
  });

  test('bring their artifacts', () => {
    const blob = { sha256: 'a'.repeat(64), bytes: 9 };
    const artifacts = [{ name: 'rows', blob, kind: 'array of 3', head: '[1' }];
    const ask = { message: 'x', mode: 'steer', artifacts };
    const state = reduce(after(start, update('ask', ask)), { type: 'messages-joined', at: 9 });
    expect(state.artifacts).toMatchObject([{ name: 'rows', blob }]);
    expect(state.transcript.messages.slice(-2)).toMatchObject([
      { role: 'user', origin: 'perdure', text: expect.stringContaining('"rows"') },
      { role: 'user', text: 'x' },
    ]);
  });

  test('of a later turn wait, and a turn without a message has the next number', () => {
    const queued = after(open, update('ask', { message: 'x' }));
    expect(reduce(queued, { type: 'messages-joined', at: 0 })).toEqual(queued);
    expect(reduce(open, { type: 'turn-begun', at: 0 }).turn.number).toBe(2);
    const far = { ...open, inbox: { ...open.inbox, waiting: [{ id: 'm', text: 'x', turn: 4 }] } };
    expect(reduce(far, { type: 'turn-begun', at: 0 }).turn.number).toBe(4);
  });
});

describe('a failed model call', () => {
  const fail = (state: RunState, reason: string): RunState =>
    after(state, scheduled(model()), failed(model(), 'x', { type: 'failed', reason }));

  test('for a prompt that is too long requests a summary, if there is anything to summarize', () => {
    const steps = [0, 1, 2].reduce((state, n) => replied(state, callReply(['nothing', n])), start);
    const long = fail(steps, 'context_too_long');
    expect([long.compaction.wanted, getOutcome(long)]).toEqual([true, null]);
    expect(nextAction(long).type).toBe('compact');
    expect(getOutcome(fail(start, 'context_too_long'))).toMatchObject({
      reason: 'context_too_long',
    });
    expect(getOutcome(fail(steps, 'error'))).toMatchObject({ reason: 'error' });
  });

  test('restarts a repair that is longer than the window', () => {
    const branch = { messages: 1, head: start.transcript.head, tokens: 5, promptTokens: 6 };
    const repairing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'repairing', branch } as const },
    };
    const again = fail(repairing, 'context_too_long');
    expect([isRepairing(again), getOutcome(again)]).toEqual([false, null]);
    const over = fail(repairing, 'error');
    expect([isRepairing(over), getOutcome(over)?.status]).toEqual([false, 'failed']);
  });
});

describe('what is reported during a turn', () => {
  const report = { type: 'storage_lost', attempt: 1, waitMs: 0, at: 3, message: 'a result' };
  const used = { inputTokens: 100, outputTokens: 40, cachedTokens: 10 };

  test('lost results join the reports and the outcome', () => {
    const state = reduce(start, { type: 'values-lost', reports: [report] });
    expect(state.turn).toMatchObject({ reports: [report], lost: ['a result'] });
    expect(getOutcome(replied(state, textReply('hi')))).toMatchObject({ lost: ['a result'] });
  });

  test('tokens of model calls count for the turn and the run, at the price of the model', () => {
    const price = { input: 1, cachedInput: 1, output: 1 };
    const state = reduce(begun(config({ price })), { type: 'tokens-used', used });
    const usage = { ...used, costUsd: 140 / 1e6 };
    expect(state.turn.spent).toMatchObject({ steps: 0, toolCalls: 0, usage });
    expect(state.total).toEqual(state.turn.spent);
  });

  test('usage with its own cost counts as it is', () => {
    const state = reduce(start, { type: 'usage-spent', usage: { ...used, costUsd: 2 } });
    expect(state.turn.spent.usage).toEqual({ ...used, costUsd: 2 });
    expect(state.total).toEqual(state.turn.spent);
  });

  test('a budget that allows no decision any longer closes the turn', () => {
    const state = reduce(start, { type: 'limit-hit', limit: 'costUsd' });
    expect(nextAction(state)).toEqual({ type: 'begin-closing', reason: 'costUsd' });
  });
});

describe('the end of a turn at a limit', () => {
  const end = (onLimit: 'answer' | 'fail'): Outcome | null =>
    getOutcome(
      reduce(begun(config({ onLimit })), { type: 'turn-ended-at-limit', reason: 'tokens', at: 0 }),
    );

  test('is composed, or fails and names the limit', () => {
    expect(end('answer')).toMatchObject({ status: 'stopped', reason: 'tokens' });
    expect(end('answer')?.answer).toBe('Stopped: the limit "tokens" was reached after 0 steps.');
    expect(end('fail')).toMatchObject({
      status: 'failed',
      reason: 'limit',
      limit: 'tokens',
      error: 'tokens: the limit was reached, and this agent has onLimit "fail"',
    });
  });

  test('says that the next model call would not fit, if less than all is used', () => {
    const limits = { tokens: 20, costUsd: 0.00001 };
    const price = { input: 2, output: 4, cachedInput: 1 };
    const state = begun({ ...config({ limits, onLimit: 'fail' }), price });
    const errorAt = (reason: 'tokens' | 'costUsd', of = state): string | null | undefined =>
      getOutcome(reduce(of, { type: 'turn-ended-at-limit', reason, at: 0 }))?.error;
    const needed = state.transcript.tokens + 32;
    expect(errorAt('tokens')).toBe(
      `tokens: the next model call would not fit into the limit "tokens": it needs at least ${needed} tokens, and this agent has onLimit "fail"`,
    );
    expect(errorAt('costUsd')).toMatch(/limit "costUsd": it needs at least 0\.000\d+ USD, and/);
    const free = { ...state, config: { ...state.config, price: null } };
    expect(errorAt('costUsd', free)).toContain('since the price of the model is unknown');
    const { revised: _, ...earlier } = state.config;
    expect(errorAt('tokens', { ...state, config: earlier })).toContain('the limit was reached');
    expect(composeAnswer(state, 'tokens')).toBe(
      `Stopped after 0 steps: the next model call would not fit into the limit "tokens": it needs at least ${needed} tokens.`,
    );
    expect(composeAnswer({ ...state, config: earlier }, 'tokens')).toBe(
      'Stopped: the limit "tokens" was reached after 0 step(s).',
    );
  });

  test('and its closing drop a repair first', () => {
    const branch = { messages: 1, head: start.transcript.head, tokens: 5, promptTokens: 6 };
    const repairing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'repairing', branch } as const },
    };
    expect(
      isRepairing(reduce(repairing, { type: 'turn-ended-at-limit', reason: 'steps', at: 0 })),
    ).toBe(false);
    const closing = reduce(repairing, { type: 'closing-begun', reason: 'steps', at: 4 });
    expect(closing.turn).toMatchObject({ phase: { type: 'closing', reason: 'steps' } });
    expect(closing.transcript.messages.at(-1)).toMatchObject({
      role: 'user',
      origin: 'perdure',
      at: 4,
    });
  });
});

describe('a run in memory', () => {
  test('emits each applied event, with the state before it', () => {
    const seen: (readonly [string, boolean])[] = [];
    const run: Run = {
      state: start,
      applied: ({ type }, before) => seen.push([type, before.paused]),
    };
    record(run, update('pause'));
    apply(run, { type: 'pause-changed', paused: false });
    expect(seen).toEqual([
      ['pause-changed', false],
      ['decision-recorded', true],
      ['pause-changed', true],
    ]);
    expect(run.state.paused).toBe(false);
  });

  test('has the events of each action that takes no time', () => {
    const by = 'cancelTurn' as const;
    expect(toEvents({ type: 'join-messages' }, 3)).toEqual([{ type: 'messages-joined', at: 3 }]);
    expect(toEvents({ type: 'begin-closing', reason: 'steps' }, 3)).toEqual([
      { type: 'closing-begun', reason: 'steps', at: 3 },
    ]);
    expect(toEvents({ type: 'end-at-limit', reason: 'steps' }, 3)).toEqual([
      { type: 'turn-ended-at-limit', reason: 'steps', at: 3 },
    ]);
    expect(toEvents({ type: 'interrupt', by }, 3)).toEqual([
      { type: 'turn-interrupted', by, at: 3 },
    ]);
    expect(toEvents({ type: 'pass-time' }, 3)).toEqual([{ type: 'time-passed', at: 3 }]);
    expect(toEvents({ type: 'begin-turn' }, 3)).toEqual([{ type: 'turn-begun', at: 3 }]);
    expect(toEvents({ type: 'close-unused' }, 3)).toEqual([
      { type: 'end-requested', by: 'closed' },
    ]);
  });
});
