import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
import {
  blocked,
  blockedUntil,
  after,
  CANCEL,
  canceled,
  completed,
  failed,
  model,
  replied,
  scheduled,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config, textReply } from '../support/scripts.js';
import { getOutcome } from '../../src/core/state/turn.js';

const start = begun(
  config({ price: { input: 1_000_000, cachedInput: 100_000, output: 2_000_000 } }),
);
const calling = after(start, scheduled(model()));

describe('a model call', () => {
  test('is in flight from when it is scheduled until it ends', () => {
    expect(workOf(calling, 'model')).toEqual({ phase: 'in-flight', as: 'attempt' });
    expect(after(calling, completed(model(), textReply('hi'))).work).toEqual([]);
  });

  test('bills cached tokens once, at their own price', () => {
    const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 4 };
    const state = replied(start, { ...textReply('hi'), usage });
    expect(state.total.usage).toEqual({ ...usage, costUsd: 6 + 0.4 + 10 });
  });

  test('that replies despite an interruption counts, and the interruption remains in force', () => {
    const reply = callReply(['look']);
    for (const by of [CANCEL, update('cancelTurn')]) {
      const state = after(calling, by, completed(model(), reply));
      expect(state.turn.spent.steps).toBe(1);
      expect(state.total.usage.inputTokens).toBe(10);
      expect(nextAction(state).type).toBe('interrupt');
    }
  });

  test('that fails ends the turn with the reason', () => {
    const problem = { type: 'failed', reason: 'refused', message: 'it refuses' };
    const refused = after(calling, failed(model(), 'x', problem));
    expect(getOutcome(refused)).toMatchObject({
      status: 'failed',
      reason: 'refused',
      error: 'it refuses',
    });
    expect(refused.work).toEqual([]);
    const byHand = after(calling, failed(model(), 'by hand'));
    expect(getOutcome(byHand)).toMatchObject({ reason: 'error', error: 'by hand' });
  });

  test('that was completed by hand with another result fails the turn, with a message', () => {
    const state = after(calling, completed(model(), { text: 7 }));
    expect(getOutcome(state)).toMatchObject({ status: 'failed', reason: 'error' });
    expect(getOutcome(state)?.error).toMatch(/^callModel: .* it was completed by hand$/);
  });

  test('that fails after an interruption leaves the end to the interruption', () => {
    const state = after(calling, update('cancelTurn'), blocked(model(), 'provider'));
    expect([getOutcome(state), state.work]).toEqual([null, []]);
    expect(after(calling, CANCEL, canceled(model())).work).toEqual([]);
  });

  test.each(['credentials', 'quota', 'model', 'provider', 'storage'])(
    'is blocked by %s, and retried later',
    (reason) => {
      const state = after(calling, blocked(model(), reason, { blob: 'b' }, 5));
      const until = reason === 'storage' ? 5 : 30_005;
      expect(workOf(state, 'model')).toMatchObject({ phase: 'waiting', block: { reason, until } });
      expect(nextAction(state).type).toBe('call-model');
    },
  );

  test('is not blocked by a reason that applies to tools, nor when it closes the turn', () => {
    expect(getOutcome(after(calling, blocked(model(), 'tool_missing')))).toMatchObject({
      status: 'failed',
      reason: 'error',
      error: 'no tool_missing',
    });
    const closing = {
      ...start,
      turn: { ...start.turn, phase: { type: 'closing', reason: 'steps' } as const },
    };
    const task = model({ closing: true });
    const state = after(closing, scheduled(task), blocked(task, 'provider'));
    expect(getOutcome(state)).toMatchObject({ status: 'stopped', reason: 'steps' });
  });

  test('that summarizes is given up if it fails, and remembers its place while it is blocked', () => {
    const task = model({ compact: 2 });
    const begins = after(start, scheduled(task));
    expect(workOf(begins, 'model')).toEqual({ cut: 2, phase: 'in-flight', as: 'attempt' });
    expect(nextAction(begins)).toEqual({ type: 'compact', cut: 2, maxOutputTokens: null });
    const waits = after(begins, blocked(task, 'quota'));
    expect(workOf(waits, 'model')).toMatchObject({ cut: 2 });
    const gaveUp = after(begins, failed(task, 'no'));
    expect(gaveUp.work).toEqual([]);
    expect(getOutcome(gaveUp)).toBeNull();
    expect(gaveUp.compaction.notBelow).toBe(gaveUp.compaction.promptTokens * 1.25);
    const paid = after(begins, completed(task, textReply('so far')));
    expect([paid.turn.spent.steps, paid.total.usage.inputTokens]).toEqual([0, 10]);
  });
});

describe('blocked work', () => {
  const wait = (state: typeof start, reason: string, rest: object = {}): typeof start =>
    after(
      state,
      scheduled(model({ blocked: reason })),
      blocked(model({ blocked: reason }), reason, rest),
    );
  const until = (state: typeof start): number | undefined => blockedUntil(state, 'model');

  test('is probed at intervals that double, up to an hour', () => {
    let state = after(calling, blocked(model(), 'quota'));
    const delays = [until(state)];
    for (let n = 0; n < 8; n += 1) {
      state = wait(state, 'quota');
      delays.push(until(state));
    }
    expect(delays.map((ms) => (ms ?? 0) / 1_000)).toEqual([
      30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600,
    ]);
  });

  test('waits at least as long as its provider requires', () => {
    expect(until(after(calling, blocked(model(), 'quota', { waitMs: 40_000 })))).toBe(40_000);
    expect(until(after(calling, blocked(model(), 'quota', { waitMs: 20_000 })))).toBe(30_000);
  });

  test('checks each blob at once only the first time', () => {
    const first = after(calling, blocked(model(), 'storage', { blob: 'a' }));
    expect(until(first)).toBe(0);
    const second = wait(first, 'storage', { blob: 'b' });
    expect([until(second), workOf(second, 'model')?.['checked']]).toEqual([0, ['a', 'b']]);
    const again = wait(second, 'storage', { blob: 'a' });
    expect([until(again), workOf(again, 'model')?.['checked']]).toEqual([120_000, ['a', 'b']]);
    const none = after(calling, blocked(model(), 'storage'));
    expect([until(none), workOf(none, 'model')?.['checked']]).toEqual([0, ['']]);
    const twice = wait(none, 'storage');
    expect([until(twice), workOf(twice, 'model')?.['checked']]).toEqual([60_000, ['']]);
  });

  test('is probed soon if another worker may succeed', () => {
    const first = after(calling, blocked(model(), 'credentials', { elsewhere: true }));
    expect([until(first), workOf(first, 'model')?.['probeMs']]).toEqual([1_000, 1_000]);
    const again = wait(first, 'model', { elsewhere: true });
    expect(workOf(again, 'model')?.['probeMs']).toBe(2_000);
    expect(until(after(calling, blocked(model(), 'credentials')))).toBe(30_000);
  });

  test('keeps everything that people need to know, and a reply that was paid for', () => {
    const reports = [{ type: 'http_502', attempt: 1, waitMs: 0, at: 1, message: 'bad' }];
    const state = after(calling, blocked(model(), 'provider', { reports, paid: { text: 'paid' } }));
    expect(workOf(state, 'model')).toEqual({
      probeMs: 30_000,
      paid: { text: 'paid' },
      block: { reason: 'provider', message: 'no provider', reports, until: 30_000 },
      phase: 'waiting',
    });
    expect(workOf(wait(state, 'provider'), 'model')?.['paid']).toEqual({ text: 'paid' });
  });

  test('keeps its block while a probe is in flight, and loses it with an attempt', () => {
    const state = after(calling, blocked(model(), 'quota'));
    const probe = after(state, scheduled(model({ blocked: 'quota' })));
    expect(workOf(probe, 'model')).toMatchObject({ as: 'probe', block: { reason: 'quota' } });
    const attempt = after(state, scheduled(model()));
    expect(workOf(attempt, 'model')).toEqual({
      probeMs: 30_000,
      phase: 'in-flight',
      as: 'attempt',
    });
  });

  test('is retried at once after `resume`, even if that arrived while it was in flight', () => {
    const state = after(calling, blocked(model(), 'quota'));
    expect(workOf(after(state, update('resume')), 'model')).toEqual({
      probeMs: 30_000,
      phase: 'waiting',
    });
    const resumed = after(calling, update('resume'));
    expect(workOf(resumed, 'model')).toEqual({ resumed: true, phase: 'in-flight', as: 'attempt' });
    expect(workOf(after(resumed, blocked(model(), 'quota')), 'model')).toEqual({
      probeMs: 30_000,
      phase: 'waiting',
    });
    expect(workOf(after(resumed, scheduled(model())), 'model')).not.toHaveProperty('resumed');
  });

  test('is retried at once if its probe is canceled: unblocked after `resume`, otherwise by the next segment', () => {
    const probe = model({ blocked: 'quota' });
    const probing = after(calling, blocked(model(), 'quota'), scheduled(probe));
    expect(workOf(after(probing, canceled(probe, 7)), 'model')).toEqual({
      probeMs: 30_000,
      block: { reason: 'quota', message: 'no quota', until: 7 },
      phase: 'waiting',
    });
    const resumed = after(probing, update('resume'), canceled(probe, 7));
    expect(workOf(resumed, 'model')).toEqual({ probeMs: 30_000, phase: 'waiting' });
  });
});
