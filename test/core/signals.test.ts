import { describe, expect, test } from 'vitest';
import { acceptMessage, acceptSignal } from '../../src/core/run/ask.js';
import { REMEMBERED_DECISIONS } from '../../src/core/state/decisions.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { checkBy } from '../../src/core/input/turn-context.js';
import { unreadable } from '../../src/core/input/input.js';
import { REMEMBERED_REFUSALS, type Ask } from '../../src/core/input/inbox.js';
import { reduce } from '../../src/core/run/reduce.js';
import { runStatus } from '../../src/core/run/status.js';
import { unloadedConfig } from '../../src/core/rules/limits.js';

const open = (): RunState => initialState(unloadedConfig('a'), { open: true });

/** Returns the state after signals with these arguments. */
function signaled(state: RunState, ...values: readonly unknown[]): RunState {
  return values.reduce<RunState>((next, value) => {
    const { event } = acceptSignal(next, value, 7);
    return event === null ? next : reduce(next, event);
  }, state);
}

describe('a message by signal', () => {
  test('is the same message as an update with its id, whichever comes first', () => {
    const ask: Ask = { message: 'hello', id: 'm', by: 'ann' };
    const bySignal = signaled(open(), ask);
    expect(bySignal.inbox.waiting).toEqual([{ id: 'm', text: 'hello', turn: 1, by: 'ann' }]);
    expect(acceptMessage(bySignal, ask, 'm').receipt).toMatchObject({ turn: 1, duplicate: true });
    const { event } = acceptMessage(open(), ask, 'm');
    const byUpdate = event === null ? open() : reduce(open(), event);
    expect(byUpdate).toEqual(bySignal);
    expect(signaled(byUpdate, ask, ask)).toEqual(byUpdate);
    const carried = reduce(byUpdate, { type: 'segment-begun' });
    expect(signaled(carried, ask)).toEqual(carried);
  });

  test('with the id of another message is refused, so that it is not lost in silence', () => {
    const revised = initialState({ ...unloadedConfig('a'), revised: true }, { open: true });
    const first: Ask = { prompt: 'pay', args: { to: 'ann', at: 1 }, id: 'm' };
    const known = signaled(revised, first);
    expect(signaled(known, first, { ...first, args: { at: 1, to: 'ann' }, mode: 'steer' })).toEqual(
      known,
    );
    const refused = signaled(known, { ...first, args: { to: 'bob' } }).inbox.refused;
    expect(refused).toEqual([
      { id: 'm', reason: expect.stringContaining('another message with this id') as string, at: 7 },
    ]);
    // A run that an earlier version began does not know what its messages said.
    const earlier = signaled(open(), first);
    expect(signaled(earlier, { ...first, args: { to: 'bob' } })).toEqual(earlier);
  });

  test.each([
    [undefined, null, 'ask: expected an object, got undefined'],
    [null, null, 'ask: expected an object, got null'],
    ['text', null, 'ask: expected an object, got "text"'],
    [[], null, 'ask: expected an object, got []'],
    [new Uint8Array(3), null, ''],
    [unreadable('no JSON'), null, 'message: '],
    [{ message: 'x' }, null, 'id: expected an id'],
    [{ message: 'x', id: 'i'.repeat(201) }, null, 'id: '],
    [{ message: { toString: 1 }, id: 'm' }, 'm', 'message: '],
    [{ message: 'x', id: { toString: 1 } }, null, 'id: '],
    [{ message: 'x', id: 'm', attachments: [{ toString: 1 }] }, 'm', 'attachments[0]'],
    [
      { message: 'x'.repeat(300_000), id: 'm' },
      'm',
      'message: expected at most 262144 characters, got 300000',
    ],
    [{ message: 'x', id: 'm', by: '' }, 'm', 'by: expected a string of 1–200 characters, got ""'],
    [{ message: 'x', id: 'm', forged: 1 }, 'm', 'ask.forged: expected one of message, id'],
  ])('that contains %j is refused with the reason', (value, id, reason) => {
    const { inbox } = signaled(open(), value);
    expect(inbox.refused).toEqual([{ id, at: 7, reason: expect.stringContaining(reason) }]);
    expect(inbox.waiting).toEqual([]);
  });

  test('is refused by a closed run, but not if the run had received it before', () => {
    const ask = { message: 'x', id: 'm' };
    const task = signaled(initialState(unloadedConfig('a')), ask);
    expect(task.inbox.refused?.[0]?.reason).toContain('this run ends with its turn');
    const closing = reduce(signaled(open(), ask), { type: 'end-requested', by: 'closed' });
    expect(signaled(closing, ask).inbox.refused).toBeUndefined();
    const late = signaled(closing, { ...ask, id: 'late' });
    expect(late.inbox.refused).toEqual([
      { id: 'late', at: 7, reason: 'the run accepts no more messages: it is closed' },
    ]);
  });

  test('in a flood of 10,000 fills the inbox, and the run keeps a limited number of refusals', () => {
    const flood = Array.from({ length: 10_000 }, (_, n) => ({
      message: 'x'.repeat(5_000),
      id: `m${n}`,
    }));
    const { inbox } = signaled(open(), ...flood);
    expect(inbox.waiting.length).toBeGreaterThan(100);
    expect(inbox.refused).toHaveLength(REMEMBERED_REFUSALS);
    expect(inbox.refused?.at(-1)?.id).toBe('m9999');
    expect(inbox.waiting.length + (inbox.refusedTotal ?? 0)).toBe(10_000);
    expect(JSON.stringify(inbox.refused).length).toBeLessThan(20_000);
  });
});

test('a total carried by an older version counts from the list that it carried', () => {
  const state = signaled(open(), 1, 2);
  const { refusedTotal: _, ...inbox } = state.inbox;
  const older = { ...state, inbox };
  expect(runStatus(older, { ended: null, run: 'r' }).refusedTotal).toBe(2);
  expect(signaled(older, 3).inbox.refusedTotal).toBe(3);
});

describe('decisions', () => {
  test('are remembered with the person who made them, the newest ones', () => {
    const state = Array.from({ length: 30 }, (_, n) => n).reduce<RunState>(
      (next, n) =>
        reduce(next, {
          type: 'decision-recorded',
          decision: { what: 'pause', id: `u${n}`, at: n, by: 'ann' },
        }),
      open(),
    );
    expect(state.decisions).toHaveLength(REMEMBERED_DECISIONS);
    expect(runStatus(state, { ended: null, run: 'r' }).decisionsTotal).toBe(30);
    expect(state.decisions?.at(-1)).toEqual({ what: 'pause', id: 'u29', at: 29, by: 'ann' });
  });

  test.each([['x'.repeat(201)], [''], [7], [null], [{}]])('refuse %j as the person', (by) => {
    expect(checkBy(by)).toContain('by: expected a string of 1–200 characters');
  });
});
