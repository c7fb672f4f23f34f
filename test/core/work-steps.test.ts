import { describe, expect, test } from 'vitest';
import { isCancelable, nextAction, nextWorkStep } from '../../src/core/run/next-action.js';
import type { RunState } from '../../src/core/state/state.js';
import type { Flight, Work } from '../../src/core/state/work.js';
import { after, CANCEL, update } from '../support/facts.js';
import { ID, runWithCall } from '../support/pending-call.js';
import { begun, config, SHORT } from '../support/scripts.js';

const NOW = 10;
const calling = runWithCall('put');
const paused = after(calling, update('pause'));

/** Waiting work of the call, or of another name. */
function waiting(rest: Partial<Work> = {}, name = ID): Work {
  return { ...rest, name, phase: 'waiting' };
}

/** Why the work is blocked, until this time. */
function blockedTo(until: number, blob?: string) {
  return { reason: 'storage', message: 'x', until, ...(blob !== undefined && { blob }) } as const;
}

function flying(as: Flight, name = ID): Work {
  return { name, phase: 'in-flight', as };
}

const IDLE = { type: 'wait', until: null };
const over = blockedTo(NOW);
const blob = blockedTo(NOW, 'a'.repeat(64));

describe('the next step of work', () => {
  test.each<[string, Work, object]>([
    ['begins at once', waiting(), { type: 'start', as: 'attempt' }],
    ['waits for its start', waiting({ startAt: NOW + 1 }), { type: 'wait', until: NOW + 1 }],
    ['begins when its start has come', waiting({ startAt: NOW }), { type: 'start', as: 'attempt' }],
    ['finds out what happened', waiting({ unknown: 'x' }), { type: 'start', as: 'verify' }],
    ['waits while it is in flight', flying('attempt'), IDLE],
    ['waits while a person decides', { name: ID, phase: 'asking' }, IDLE],
    [
      'waits while it is blocked',
      waiting({ block: blockedTo(NOW + 1) }),
      { type: 'wait', until: NOW + 1 },
    ],
    [
      'looks for a worker that has the tool of a blocked call',
      waiting({ block: over }),
      { type: 'start', as: 'find', block: over },
    ],
    [
      'tries a blocked call if a worker has its tool',
      waiting({ block: over, found: true }),
      { type: 'start', as: 'probe', block: over },
    ],
    [
      'tries other blocked work',
      waiting({ block: over }, 'model'),
      { type: 'start', as: 'probe', block: over },
    ],
    [
      'finds out what happened when it is unblocked',
      waiting({ block: over, unknown: 'x' }),
      { type: 'start', as: 'verify', block: over },
    ],
    [
      'checks whether the missing blob is there',
      waiting({ block: blob }),
      { type: 'start', as: 'check', block: blob },
    ],
  ])('%s', (_, work, step) => {
    expect(nextWorkStep(calling, work, NOW)).toEqual(step);
  });

  test('needs no time to have passed if the work has no start', () => {
    expect(nextWorkStep(calling, waiting(), 0)).toEqual({ type: 'start', as: 'attempt' });
  });

  test.each<[string, Work, object]>([
    ['does not begin', waiting(), IDLE],
    ['does not end a block by a probe', waiting({ block: over }), IDLE],
    ['still waits for its start', waiting({ startAt: NOW + 1 }), { type: 'wait', until: NOW + 1 }],
    ['still finds out what happened', waiting({ unknown: 'x' }), { type: 'start', as: 'verify' }],
    [
      'still checks whether the missing blob is there',
      waiting({ block: blob }),
      { type: 'start', as: 'check', block: blob },
    ],
  ])('%s while the run is paused', (_, work, step) => {
    expect(nextWorkStep(paused, work, NOW)).toEqual(step);
  });

  test.each<[string, Work, object]>([
    ['stops', waiting(), { type: 'stop' }],
    ['stops though it is blocked', waiting({ block: over }), { type: 'stop' }],
    ['stops though a person could decide', { name: ID, phase: 'asking' }, { type: 'stop' }],
    ['waits for what is in flight', flying('probe'), IDLE],
  ])('%s when the run is interrupted', (_, work, step) => {
    expect(nextWorkStep(after(calling, CANCEL), work, NOW)).toEqual(step);
    expect(nextWorkStep(after(calling, update('cancelTurn')), work, NOW)).toEqual(step);
  });
});

describe('work in flight', () => {
  test.each<[Flight, boolean]>([
    ['find', true],
    ['check', true],
    ['probe', true],
    ['attempt', false],
    ['verify', false],
    ['child', false],
    ['follow', false],
    ['decide', false],
  ])('as `%s` may be canceled: %s', (as, isAllowed) => {
    expect(isCancelable(calling, flying(as))).toBe(isAllowed);
  });

  test('as a probe may not be canceled if the call may be executed only once', () => {
    const paying = runWithCall('pay');
    expect(isCancelable(paying, flying('probe'))).toBe(false);
    expect(isCancelable(paying, flying('find'))).toBe(true);
    expect(isCancelable(paying, flying('probe', 'model'))).toBe(true);
  });

  test('is needed for anything to be canceled', () => {
    expect(isCancelable(calling, waiting())).toBe(false);
    expect(isCancelable(calling, { name: ID, phase: 'asking' })).toBe(false);
  });
});

describe('a full segment', () => {
  const ends = (state: RunState, work: Work): boolean =>
    nextAction({ ...state, work: [work] }, { ...SHORT, historyEvents: 5_000 }, NOW).type ===
    'continue-as-new';

  test.each<[string, Work, boolean]>([
    ['that is blocked', waiting({ block: over }), true],
    ['about which a person decides', { name: ID, phase: 'asking' }, true],
    ['whose probe can be canceled', flying('find'), true],
    ['that is being executed', flying('attempt'), false],
    ['whose outcome is unknown', waiting({ unknown: 'x' }), false],
    ['that starts later', waiting({ startAt: NOW + 1 }), false],
    ['that has paid replies', waiting({ paid: [] }), false],
  ])('with a call %s ends: %s', (_, work, isOver) => {
    expect(ends(calling, work)).toBe(isOver);
  });

  test('with a model call ends unless its reply is paid', () => {
    const state = begun(config());
    expect(ends(state, waiting({}, 'model'))).toBe(true);
    expect(ends(state, waiting({ paid: {} }, 'model'))).toBe(false);
  });
});
