import { expect, test } from 'vitest';
import { joinContexts, joinedContextProblem } from '../../src/core/input/turn-context.js';
import { reduce } from '../../src/core/run/reduce.js';
import { begun, config } from '../support/scripts.js';
import { after, update } from '../support/facts.js';
import { refusalText } from '../support/refusal-text.js';

const context = (value: object | string, replace = false) =>
  ({ value, ...(replace && { replace: true }) }) as NonNullable<
    Parameters<typeof joinContexts>[0][0]
  >;

test('the contexts of a turn extend each other, from the oldest to the newest', () => {
  const [first, second] = [context({ tenant: 'a', day: 1 }), context({ day: 2 })];
  expect(joinContexts([undefined, first, undefined, second])).toEqual(
    context({ tenant: 'a', day: 2 }),
  );
  expect(joinContexts([undefined])).toBeUndefined();
  expect(joinContexts([first, context({ x: 1 }, true), second])).toEqual(
    context({ x: 1, day: 2 }, true),
  );
  expect(joinContexts([first, context('a text')])).toEqual(context('a text'));
});

test('all contexts of a turn together have a limit', () => {
  const half = 'x'.repeat(9_000);
  expect(joinedContextProblem([context({ a: half }), context({ a: half })])).toBeNull();
  expect(joinedContextProblem([context({ a: half }), context({ b: half }, true)])).toBeNull();
  expect(joinedContextProblem([context({ a: half }), context({ b: half })])).toMatch(
    /^context: expected at most 16000 characters from all messages of the turn, got 18\d{3}; send/,
  );
});

test('a message that joins a turn extends its context, and is refused if that is too large', () => {
  const start = begun(config());
  const asked = (given: object) => ({ message: 'x', mode: 'steer' as const, ...given });
  const join = (state: typeof start, id: string, given: object) =>
    reduce(after(state, update('ask', asked({ id, context: given }))), {
      type: 'messages-joined',
      at: 9,
    });
  const one = join(start, 'one', { tenant: 'a', day: 1 });
  const two = join(one, 'two', { day: 2 });
  expect(two.turn.context).toEqual({ value: { tenant: 'a', day: 2 } });
  const half = 'x'.repeat(9_000);
  const full = join(two, 'three', { half });
  const more = asked({ context: { more: half } });
  expect(refusalText(two, more, 'four')).toBeNull();
  expect(refusalText(full, more, 'four')).toMatch(/^context: expected at most 16000 characters/);
  expect(refusalText(full, { ...more, contextMode: 'replace' }, 'four')).toBeNull();
  expect(refusalText(full, asked({}), 'four')).toBeNull();
  // A message for its own turn has its own context, and so has one that arrives between turns.
  const open = { ...full, open: true };
  expect(refusalText(open, { ...more, mode: 'queue' }, 'four')).toBeNull();
  const over = { ...open, turn: { ...open.turn, phase: { type: 'idle', outcome: null } as const } };
  expect(refusalText(over, more, 'four')).toBeNull();
});
