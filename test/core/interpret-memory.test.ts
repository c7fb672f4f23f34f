import { describe, expect, test } from 'vitest';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import type { RunState } from '../../src/core/state/state.js';
import { getOutcome } from '../../src/core/state/turn.js';
import {
  after,
  canceled,
  CANCEL,
  completed,
  failed,
  replied,
  scheduled,
} from '../support/facts.js';
import { begun, config, textReply } from '../support/scripts.js';

const TASK = { activity: 'rememberTurn', input: { turn: 1 } };
const REPORT = { type: 'remember_failed', attempt: 3, waitMs: 0, at: 7, message: 'full' };

/** A run of an agent with a memory, whose only turn has ended and is recorded. */
function ended(rest: Partial<RunState> = {}): RunState {
  const start = begun(config({ remember: { timeoutMs: 1_000 } }));
  return reduce(
    { ...replied(start, textReply('done')), ...rest },
    { type: 'turn-recorded', at: 1 },
  );
}

describe('a turn of an agent with a memory', () => {
  test('is remembered once, after its end and before anything else', () => {
    const state = ended();
    expect(getOutcome(state)).toMatchObject({ status: 'completed' });
    expect(nextAction(state)).toEqual({ type: 'remember' });
    const underWay = after(state, scheduled(TASK));
    expect(nextAction(underWay)).toEqual({ type: 'await-work' });
    const over = after(underWay, completed(TASK, undefined));
    expect(nextAction(over)).toMatchObject({ type: 'finish' });
    expect(over.work).toEqual([]);
  });

  test('is not remembered in a run that is canceled', () => {
    expect(nextAction(after(ended(), CANCEL))).toMatchObject({ type: 'finish' });
    const underWay = after(ended(), scheduled(TASK), CANCEL);
    expect(nextAction(underWay)).toEqual({ type: 'await-work' });
    expect(nextAction(after(underWay, canceled(TASK)))).toMatchObject({ type: 'finish' });
  });

  test('keeps its outcome if it cannot be remembered, and reports that', () => {
    const problem = { type: 'failed', reason: 'error', message: 'full', reports: [REPORT] };
    const reported = after(ended(), scheduled(TASK), failed(TASK, 'x', problem, 7));
    expect(reported.turn.reports).toEqual([REPORT]);
    expect(nextAction(reported)).toMatchObject({ type: 'finish' });
    const lost = after(
      ended(),
      scheduled(TASK),
      failed(TASK, `a lost worker${'!'.repeat(400)}`, null, 9),
    );
    expect(lost.turn.reports).toEqual([
      { ...REPORT, attempt: 1, at: 9, message: `a lost worker${'!'.repeat(287)}` },
    ]);
    expect(getOutcome(lost)).toEqual(getOutcome(ended()));
  });

  test('does not prevent the next turn from being remembered', () => {
    const first = after(ended({ open: true }), scheduled(TASK), completed(TASK, undefined));
    expect(first.turn.remembered).toBe(true);
    const message = { id: 'm2', text: 'more', turn: 2 };
    const waiting = reduce(first, { type: 'message-received', message });
    expect(nextAction(waiting)).toEqual({ type: 'begin-turn' });
    const second = reduce(waiting, { type: 'turn-begun', at: 2 });
    expect(second.turn.remembered).toBeUndefined();
  });
});
