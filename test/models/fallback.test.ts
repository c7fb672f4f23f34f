import { expect, test } from 'vitest';
import { decideTurn, FIRST_TURN, type ModelTurn } from '../../src/activities/model/fallback.js';
import { decideFailure } from '../../src/activities/model/model-failures.js';
import { ModelError, type ModelErrorDetails } from '../../src/models/model.js';

const NEXT = { decision: { type: 'retry', delayMs: 100 }, turn: { index: 1, failures: 0 } };

function decide(
  details: Partial<ModelErrorDetails>,
  given: { turn?: ModelTurn; models?: number; left?: number } = {},
): ReturnType<typeof decideTurn> {
  const error = new ModelError('it failed', { kind: 'retry', type: 'x', ...details });
  const { turn = FIRST_TURN, models = 2, ...left } = given;
  const decision = decideFailure(error, {
    attempt: 1,
    elapsedMs: 0,
    random: () => 1,
    ...left,
  });
  return decideTurn({ error, decision, turn, models, ...left });
}

test('a spent quota, and the second failure in a row, call the next model at once', () => {
  expect(decide({ kind: 'quota' })).toEqual(NEXT);
  expect(decide({})).toEqual({
    decision: { type: 'retry', delayMs: 500 },
    turn: { index: 0, failures: 1 },
  });
  expect(decide({}, { turn: { index: 0, failures: 1 } })).toEqual(NEXT);
});

test('a provider that asks for more than ten seconds is not waited for', () => {
  expect(decide({ retryAfterMs: 10_000 }).turn.index).toBe(0);
  expect(decide({ retryAfterMs: 10_001 })).toEqual(NEXT);
});

test.each([
  'credentials',
  'model',
  'bad_request',
  'request',
  'context_too_long',
  'empty',
  'malformed',
] as const)('a failure of kind %s never falls through', (kind) => {
  const turn = { index: 0, failures: 5 };
  const { decision, turn: after } = decide({ kind }, { turn });
  expect(after.index).toBe(0);
  expect(decision).toEqual(decide({ kind }, { turn, models: 1 }).decision);
});

test('after the last model, the run waits as without fallbacks, and the first one follows', () => {
  const turn = { index: 1, failures: 1 };
  expect(decide({}, { turn })).toEqual({
    decision: { type: 'retry', delayMs: 500 },
    turn: FIRST_TURN,
  });
  expect(decide({ kind: 'quota' }, { turn })).toEqual({
    decision: { type: 'blocked', reason: 'quota' },
    turn: FIRST_TURN,
  });
});

test('a run that does not wait for its model calls no fallback after its last attempt', () => {
  expect(decide({ kind: 'quota' }, { left: 1 })).toEqual(NEXT);
  expect(decide({ kind: 'quota' }, { left: 0 }).decision.type).toBe('failed');
});
