import { describe, expect, test } from 'vitest';
import { nextDeadline } from '../../src/core/rules/limits.js';
import { nextActionAt } from '../../src/core/interpret/loop.js';
import { NEVER_FULL } from '../../src/core/run/next-action.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { after, CANCEL, canceled, completed, model, scheduled, update } from '../support/facts.js';
import { begun, config, textReply } from '../support/scripts.js';
import { getOutcome } from '../../src/core/state/turn.js';

const clock = (at: number) => ({ type: 'clock', at }) as const;
const turn = begun(config({ limits: { wallMs: 100 } }));
const both = begun(config({ limits: { wallMs: 100, run: { wallMs: 250 } } }));
const ofRun = begun(config({ limits: { run: { wallMs: 250 } } }));
const idle: RunState = initialState(config({ limits: { wallMs: 100, run: { wallMs: 250 } } }), {
  open: true,
});

describe('the deadline of a turn', () => {
  test('interrupts it once, and the closing call follows', () => {
    expect(after(turn, clock(99)).turn.interruption).toBeUndefined();
    expect(nextActionAt({ state: turn }, NEVER_FULL, 99).type).toBe('call-model');
    expect(nextActionAt({ state: turn }, NEVER_FULL, 100).type).toBe('interrupt');
    const calling = after(turn, scheduled(model()), clock(100));
    expect(calling.turn.interruption).toBe('wallMs');
    expect(calling.ending).toBeNull();
    expect(after(calling, clock(200))).toEqual(calling);
    const run = { state: after(calling, canceled(model())) };
    expect(nextActionAt(run, NEVER_FULL, 200)).toEqual({ type: 'interrupt', by: 'wallMs' });
  });

  test('that has passed precedes other events of the same time', () => {
    const calling = after(turn, scheduled(model()));
    const late = after(calling, completed(model(), textReply('late'), 100));
    expect(late.turn.interruption).toBe('wallMs');
    expect(getOutcome(late)).toMatchObject({ status: 'completed' });
    expect(
      after(calling, completed(model(), textReply('in time'), 99)).turn.interruption,
    ).toBeUndefined();
  });

  test('does not replace a cancel', () => {
    const off = after(turn, scheduled(model()), update('cancelTurn'), clock(150));
    expect(off.turn.interruption).toBe('cancelTurn');
    const over = after(turn, scheduled(model()), clock(100), update('cancelTurn', {}, 'u', 110));
    expect(over.turn.interruption).toBe('cancelTurn');
    expect(after(turn, CANCEL, clock(150)).turn.interruption).toBeUndefined();
  });

  test('does not exist between turns', () => {
    expect(after(idle, clock(150))).toEqual(idle);
  });
});

describe('the deadline of a run', () => {
  test('ends the run, and interrupts its turn', () => {
    const state = after(ofRun, clock(250));
    expect([state.ending, state.turn.interruption]).toEqual(['wallMs', 'wallMs']);
    expect(after(ofRun, clock(249))).toEqual(ofRun);
    expect(after(state, clock(300))).toEqual(state);
  });

  test('ends a run between its turns, without an interruption', () => {
    const state = after(idle, clock(250));
    expect([state.ending, state.turn.interruption]).toEqual(['wallMs', undefined]);
    expect(nextActionAt({ state }, NEVER_FULL, 250)).toMatchObject({
      type: 'finish',
      outcome: { status: 'stopped', reason: 'wallMs' },
    });
  });

  test('is independent of that of the turn, and either may come first', () => {
    expect(nextDeadline(both)).toEqual({ at: 100, of: 'turn' });
    const reached = { ...both, turn: { ...both.turn, limit: 'wallMs' as const } };
    expect(nextDeadline(reached)).toEqual({ at: 250, of: 'run' });
    const late = { ...both, turn: { ...both.turn, startedAt: 200 } };
    expect(nextDeadline(late)).toEqual({ at: 250, of: 'run' });
    expect(nextDeadline({ ...late, turn: { ...late.turn, limit: 'wallMs' } })).toEqual({
      at: 250,
      of: 'run',
    });
    const same = { ...both, turn: { ...both.turn, startedAt: 150 } };
    expect(nextDeadline(same)).toEqual({ at: 250, of: 'run' });
    expect(nextDeadline({ ...turn, turn: { ...turn.turn, limit: 'wallMs' } })).toBeNull();
    expect(nextDeadline({ ...both, ending: 'wallMs' })).toEqual({ at: 100, of: 'turn' });
    expect(nextDeadline({ ...ofRun, ending: 'wallMs' })).toBeNull();
    expect(nextDeadline({ ...ofRun, ending: 'closed' })).toEqual({ at: 250, of: 'run' });
  });
});
