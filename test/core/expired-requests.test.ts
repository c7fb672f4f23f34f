import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import type { StopReason } from '../../src/core/transcript/outcome.js';
import type { RunState } from '../../src/core/state/state.js';
import { reduce } from '../../src/core/run/reduce.js';
import { afterNextAction, runWithCall, decision, ID, requestOf } from '../support/pending-call.js';
import { after, replied, results, update } from '../support/facts.js';
import { callReply, begun, config } from '../support/scripts.js';

const clock = (at: number) => ({ type: 'clock', at }) as const;

describe('an approval with a time limit', () => {
  const verdict = { then: 'ask', why: 'a rule', expires: 3_600_000 } as const;
  const state = afterNextAction(runWithCall('put', { verdict }), 10_000);

  test('is waited for until then', () => {
    expect(requestOf(state)).toMatchObject({ raisedAt: 10_000, expiresAt: 3_610_000 });
    expect(after(state, clock(3_609_999))).toEqual(state);
  });

  test('is denied then, and the model and the operator get the reason', () => {
    const late = after(state, clock(3_610_000));
    expect(late.work).toEqual([]);
    expect(results(late)).toEqual([
      '{"error":{"type":"denied","message":"not executed: no decision within 1 hour"}}',
    ]);
    expect(late.decisions).toEqual([
      { what: 'resolve', id: '', at: 3_610_000, request: 'r1', call: ID, as: 'expired' },
    ]);
    expect(late.turn.denials).toBe(1);
    // However late the run processes the expiry, it reports how long it has waited for people.
    expect(results(after(state, clock(9_999_000)))).toEqual(results(late));
  });

  test('ends without a result if its call is over', () => {
    const over = { ...state, turn: { ...state.turn, phase: { type: 'deciding' } as const } };
    const late = after(over, clock(3_610_000));
    expect([late.work, results(late)]).toEqual([[], []]);
  });

  test('rejects a decision at that time as too late', () => {
    const late = after(state, decision(state, 'approve', {}, { at: 3_610_000 }));
    expect(late.decisions?.map(({ as }) => as)).toEqual(['expired']);
  });
});

/** A run that asks whether its limit of one step may be raised. */
function atLimit(rest: Parameters<typeof config>[0] = {}): RunState {
  const state = begun(config({ onLimit: 'ask', limits: { steps: 1 }, ...rest }));
  return afterNextAction(replied(state, callReply(['nothing'])), 7);
}

describe('a request about a limit', () => {
  const state = atLimit();
  const resolve = (as: string, rest: object = {}): RunState =>
    after(state, decision(state, as, rest, { name: 'limit', at: 9 }));

  test('shows the limit with its usage', () => {
    expect(requestOf(state, 'limit')).toMatchObject({
      id: 'r1',
      kind: 'limit',
      shown: 'limit steps: 1 of 1 used',
      limit: { name: 'steps', used: 1, limit: 1 },
      raisedAt: 7,
      expiresAt: null,
      decisions: ['raise', 'stop'],
    });
    expect(nextAction(state)).toEqual({ type: 'await-decision' });
  });

  test('names the limit of the whole run if that was reached, under the same digest', () => {
    const whole = atLimit({ limits: { steps: 6, run: { steps: 1 } } });
    expect(requestOf(whole, 'limit')).toMatchObject({
      shown: 'limit run.steps: 1 of 1 used',
      why: 'the limit "run.steps" was reached',
      limit: { name: 'steps', used: 1, limit: 1, scope: 'run' },
      fix: expect.stringContaining('--add run.steps=N'),
    });
    // The digest is that of what the run has recorded, which other limits do not change.
    const set = after(whole, update('setLimits', { steps: 9, run: { steps: null } }, 'l', 9));
    const other = after(whole, update('setLimits', { steps: 9 }, 'l', 9));
    expect(set.work).toEqual([]);
    expect(set.decisions).toMatchObject([{ what: 'setLimits', limits: 'steps=9 run.steps=none' }]);
    expect(requestOf(other, 'limit').digest).toBe(requestOf(whole, 'limit').digest);
    const asked = whole.work.find(({ name }) => name === 'limit');
    expect(asked?.request).toMatchObject({ limit: { name: 'steps', used: 1, limit: 6 } });
  });

  test('continues the turn if the limit is raised', () => {
    const raised = resolve('raise', { arguments: { steps: 2 }, by: 'ann' });
    expect(raised.config.limits.turn).toMatchObject({ steps: 3 });
    expect(raised.work).toEqual([]);
    expect(nextAction(raised)).toMatchObject({ type: 'call-model', closing: false });
    expect(raised.decisions).toEqual([
      { what: 'resolve', id: 'u r1', at: 9, by: 'ann', request: 'r1', as: 'raise' },
    ]);
  });

  test('is released by new limits that allow the turn to go on, and by no others', () => {
    const set = (limits: object, from = state): RunState =>
      after(from, update('setLimits', { ...limits, by: 'ann' }, 'l', 9));
    const freed = set({ steps: 3 });
    expect(freed.work).toEqual([]);
    expect(nextAction(freed)).toMatchObject({ type: 'call-model', closing: false });
    expect(nextAction(set({ steps: null }))).toMatchObject({ type: 'call-model' });
    for (const limits of [{ steps: 1 }, { tokens: 9_000 }, { steps: 3, run: { steps: 1 } }]) {
      expect(requestOf(set(limits), 'limit').id).toBe('r1');
    }
    // Only a checked decision counts, and an earlier version only set the limits.
    const { semantics: _, ...earlier } = state.config;
    const checked = { ...state.config, decisions: { mayDecide: true } as const };
    for (const own of [checked, earlier]) {
      const asked = set({ steps: 3 }, { ...state, config: own });
      expect(requestOf(asked, 'limit').id).toBe('r1');
      expect(asked.config.limits.turn.steps).toBe(3);
    }
  });

  test('says that the next model call would not fit, if less than all is used', () => {
    const limited = config({ onLimit: 'ask', limits: { run: { tokens: 20 } } });
    const asked = afterNextAction(begun(limited), 7);
    expect(requestOf(asked, 'limit')).toMatchObject({
      shown: 'limit run.tokens: 0 of 20 used',
      why: expect.stringMatching(
        /^the next model call would not fit into the limit "run\.tokens": it needs at least \d+ tokens$/,
      ),
    });
  });

  test('is followed by a request about another limit that is reached, too', () => {
    const set = update('setLimits', { steps: 3, tokens: 1 }, 'l', 9);
    const freed = afterNextAction(after(state, set), 11);
    expect(requestOf(freed, 'limit')).toMatchObject({ id: 'r2', limit: { name: 'tokens' } });
    // An earlier version kept the request about the first one.
    const { revised: _, ...earlier } = state.config;
    const kept = after({ ...state, config: earlier }, set);
    expect(requestOf(kept, 'limit')).toMatchObject({ id: 'r1', limit: { name: 'steps' } });
  });

  test('also raises a limit that the calls of a message have used up', () => {
    const calls = begun(config({ onLimit: 'ask', limits: { toolCalls: 1 } }));
    const over = replied(calls, callReply(['look', { n: 1 }], ['look', { n: 2 }]));
    const result = { id: ID, ok: true, text: 'seen', executed: true };
    const asking = afterNextAction(reduce(over, { type: 'call-finished', result, at: 1 }));
    expect(asking.turn.limit).toBe('toolCalls');
    expect(requestOf(asking, 'limit')).toMatchObject({
      shown: 'limit tool-calls: 1 of 1 used',
      why: 'the limit "tool-calls" was reached',
    });
    const fact = decision(asking, 'raise', { arguments: { toolCalls: 1 } }, { name: 'limit' });
    const raised = after(asking, fact);
    const set = after(asking, update('setLimits', { toolCalls: 2 }, 'l'));
    for (const freed of [raised, set]) {
      expect([freed.turn.limit, freed.config.limits.turn.toolCalls]).toEqual([null, 2]);
      expect(nextAction(freed)).toMatchObject({ type: 'call-model', closing: false });
    }
  });

  test('is repeated if the limit is raised by nothing', () => {
    const raised = resolve('raise');
    expect(raised.config.limits.turn.steps).toBe(1);
    expect(nextAction(raised)).toMatchObject({ type: 'ask-limit' });
  });

  test('closes the turn if the limit is not raised, and is not repeated', () => {
    const stopped = resolve('stop');
    expect(stopped.work).toEqual([]);
    expect(openRequests(stopped, 'run')).toEqual([]);
    expect(nextAction(stopped)).toEqual({ type: 'begin-closing', reason: 'steps' });
    expect(stopped.decisions).toMatchObject([{ as: 'stop' }]);
    expect(stopped.decisions?.[0]).not.toHaveProperty('call');
  });

  test('does not raise the limit if it expires', () => {
    const reason: StopReason = 'steps';
    const request = {
      kind: 'limit',
      why: '',
      raisedAt: 0,
      expiresAt: 50,
      limit: { name: reason, used: 1, limit: 1 },
    } as const;
    const timed = reduce(state, { type: 'request-raised', work: 'limit', request });
    expect(requestOf(timed, 'limit')).toMatchObject({ expiresAt: 50, onExpiry: 'stop' });
    const over = after(timed, clock(50));
    expect(over.work).toEqual([]);
    expect(nextAction(over)).toEqual({ type: 'begin-closing', reason });
    expect(over.decisions).toEqual([
      { what: 'resolve', id: '', at: 50, request: 'r2', as: 'expired' },
    ]);
  });
});
