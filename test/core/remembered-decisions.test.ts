import { expect, test } from 'vitest';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { askRefusal } from '../../src/core/run/ask.js';
import { reduce } from '../../src/core/run/reduce.js';
import { REMEMBERED_DECISIONS } from '../../src/core/state/decisions.js';
import type { RunState } from '../../src/core/state/state.js';
import { waiting } from '../support/asking-graph.js';
import { after, completed, scheduled, update } from '../support/facts.js';
import {
  afterNextAction,
  checkOf,
  decision,
  requestOf,
  runWithCall,
} from '../support/pending-call.js';
import { begun, config } from '../support/scripts.js';

/** Decisions that a run remembers although newer ones have come: those that an open request needs. */

/** Returns the state after more other decisions than a run remembers. */
const muchLater = (state: RunState, name = 'pause'): RunState =>
  Array.from({ length: REMEMBERED_DECISIONS + 5 }, (_, n) => n).reduce<RunState>(
    (next, n) =>
      reduce(next, {
        type: 'decision-recorded',
        decision: { what: 'pause', id: `${name} ${n}`, at: 30, by: 'cid' },
      }),
    state,
  );

const idsOf = ({ decisions = [] }: RunState): readonly string[] =>
  decisions.map(({ id }) => id).filter((id) => !id.includes('pause'));

test('the newest refusal of an open request stays, and leaves with its request', () => {
  const strict = begun({ ...config(), decisions: { mayDecide: true } });
  const verdict = { then: 'ask', why: 'a rule' } as const;
  let state = afterNextAction(runWithCall('put', { verdict }, strict));
  const refuse = (): RunState => {
    const proposed = after(state, decision(state, 'approve', { by: 'ann' }, { at: 10 }));
    const checking = after(proposed, scheduled(checkOf(proposed)));
    return after(checking, completed(checkOf(checking), { ok: false, message: 'no' }, 20));
  };
  state = muchLater(refuse());
  expect(idsOf(state)).toEqual(['u r1']);
  expect(state.decisions).toHaveLength(REMEMBERED_DECISIONS + 1);
  expect(requestOf(state).refused).toBe('no');
  // Only the newest one.
  const again = {
    ...(state.decisions?.[0] ?? { what: 'resolve', at: 40 }),
    id: 'v r1',
  } as const;
  state = muchLater(reduce(state, { type: 'decision-recorded', decision: again }), 'second pause');
  expect(idsOf(state)).toEqual(['v r1']);
  const closed = muchLater({ ...state, work: [] }, 'third pause');
  expect(idsOf(closed)).toEqual([]);
});

test('the answer of another person to the form that an open one has replaced stays', () => {
  const edited = { message: 'edit: only a2', by: 'ann' };
  let state = after(waiting({ plan: 'plan' }), update('ask', edited, 'e', 6));
  while (openRequests(state, 'run').length === 0) state = afterNextAction(state, 7);
  state = muchLater(state);
  const bob = { message: 'yes', by: 'bob', sentAt: 8 };
  expect(askRefusal(state, bob, { id: 'new', now: 9 })).toMatchObject({ reason: 'unbound' });
  expect(askRefusal(state, { ...bob, by: 'ann' }, { id: 'new', now: 9 })).toBeNull();
});

test('a message that the history has keeps its meaning', () => {
  const edited = { message: 'edit: only a2', by: 'ann' };
  let state = after(waiting({ plan: 'plan' }), update('ask', edited, 'e', 6));
  while (openRequests(state, 'run').length === 0) state = afterNextAction(state, 7);
  state = muchLater(state);
  const input = { message: 'yes', by: 'bob', sentAt: 8, id: 's' };
  const received = [
    after(state, update('ask', input, 'n', 9)),
    after(state, { type: 'signal', name: 'message', input, at: 9 }),
  ];
  // The yes is one to the plan.
  for (const { decisions } of received) expect(decisions?.at(-1)).toMatchObject({ as: 'approve' });
});
