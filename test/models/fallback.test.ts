import { expect, test } from 'vitest';
import {
  FIRST_TURN,
  type ModelTurn,
  asOutage,
  decideTurn,
  firstTurn,
  rest,
} from '../../src/activities/model/fallback.js';
import { decideFailure } from '../../src/activities/model/model-failures.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import { ModelError, type ModelErrorDetails } from '../../src/models/model.js';
import { request } from './support.js';

const NEXT = { decision: { type: 'retry', delayMs: 100 }, turn: { index: 1, failures: 0 } };

function decide(
  details: Partial<ModelErrorDetails>,
  given: { turn?: ModelTurn; models?: number; left?: number } = {},
): ReturnType<typeof decideTurn> {
  const { turn = FIRST_TURN, models = 2, ...left } = given;
  const thrown = new ModelError('it failed', { kind: 'retry', type: 'x', ...details });
  const error = asOutage(thrown, turn);
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

test.each(['no_images', 'no_files', 'bad_attachment', 'no_native_tools', 'no_computer_use'])(
  'a fallback that cannot take the request (%s) is passed over, and then the first one is waited for',
  (type) => {
    const lacks = { kind: 'request', type } as const;
    expect(decide(lacks)).toMatchObject({ decision: { type: 'failed' }, turn: { index: 0 } });
    const second = { turn: { index: 1, failures: 0 }, models: 3 };
    expect(decide(lacks, second)).toEqual({
      decision: { type: 'retry', delayMs: 100 },
      turn: { index: 2, failures: 0 },
    });
    expect(decide(lacks, { ...second, models: 2 })).toEqual({
      decision: { type: 'retry', delayMs: 500 },
      turn: FIRST_TURN,
    });
    expect(decide(lacks, { ...second, left: 0 }).decision.type).toBe('failed');
  },
);

test('no call begins with a fallback that cannot take the request', () => {
  const catalog = createModelCatalog(
    {
      blind: { baseUrl: 'http://127.0.0.1:1/v1', capabilities: { images: false, files: false } },
      seeing: { baseUrl: 'http://127.0.0.1:1/v1' },
    },
    {},
  );
  const image = { type: 'image', url: 'https://example.org/a.png' } as const;
  const withImage = request({ messages: [{ role: 'user', text: 'x', attachments: [image] }] });
  const searching = request({ settings: { nativeTools: [{ type: 'web_search' }] } });
  const first = (sent = request({}), fallbacks = ['blind', 'seeing']) =>
    firstTurn(catalog, { model: 'm', fallbacks }, { request: sent, now: 0 }).index;
  expect([first(), first(withImage)]).toEqual([0, 0]);
  rest(catalog, 'm', 0);
  expect([first(), first(withImage)]).toEqual([1, 2]);
  expect([first(withImage, ['blind']), first(searching)]).toEqual([0, 0]);
});
