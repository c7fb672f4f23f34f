import { describe, expect, test } from 'vitest';
import type { CheckDecisionResult } from '../../src/core/guards/recorded.js';
import type { RunState } from '../../src/core/state/state.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { presentRequest } from '../../src/core/requests/presentation.js';
import { askRefusal } from '../../src/core/run/ask.js';
import { runStatus } from '../../src/core/run/status.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import {
  afterNextAction,
  runWithCall,
  checkOf,
  decision,
  ID,
  requestOf,
} from '../support/pending-call.js';
import {
  after,
  blocked,
  canceled,
  completed,
  failed,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { begun, config } from '../support/scripts.js';

/** A run whose workers check who may decide. */
const strict: RunState = begun({ ...config(), decisions: { mayDecide: true } });
const VERDICT = { then: 'ask', why: 'a rule' } as const;

/** A call that waits for approval until 100, and one with a decision that is being checked. */
function checking(as = 'approve', rest: object = {}): RunState {
  const verdict = { ...VERDICT, expires: 100 };
  const state = afterNextAction(runWithCall('put', { verdict }, strict));
  const proposed = after(state, decision(state, as, { by: 'ann', ...rest }, { at: 10 }));
  return after(proposed, scheduled(checkOf(proposed)));
}

const end = (state: RunState, result: CheckDecisionResult, at = 20): RunState =>
  after(state, completed(checkOf(state), result, at));

describe('a decision that a worker checks', () => {
  test.each(['approve', 'deny'])('does not count before the worker allows it: %s', (as) => {
    const state = checking(as);
    expect(workOf(state, ID)).toMatchObject({ phase: 'in-flight', as: 'decide' });
    expect([state.decisions, results(state)]).toEqual([undefined, []]);
    const done = end(state, { ok: true });
    expect(openRequests(done, 'run')).toEqual([]);
    // The time at which the person decided is the one that counts.
    expect(done.decisions).toEqual([
      { what: 'resolve', id: 'u r1', at: 10, by: 'ann', request: 'r1', call: ID, as },
    ]);
    const executed = nextAction(done).type === 'run-calls';
    expect([executed, results(done).length]).toEqual(as === 'approve' ? [true, 0] : [false, 1]);
  });

  test('keeps a message that may be another one out, and says why', () => {
    const refusal = askRefusal(
      checking('edit', { arguments: {} }),
      { message: 'yes' },
      { id: 'm', now: 11 },
    );
    expect(refusal).toMatchObject({
      reason: 'checking',
      message: expect.stringMatching(
        /^message: another decision about r1 \(edit\) waits for a worker/,
      ),
    });
  });

  test('leaves no command that decides in the status, because the run would refuse it', () => {
    const { message } = runStatus(checking(), { ended: null, run: 'run' });
    expect(message).toBe('a rule; a decision waits for a worker to check it');
  });

  test('is executed when the check ends', () => {
    expect(end(checking('deny'), { ok: true }, 33).transcript.messages.at(-1)?.at).toBe(33);
  });

  test('that the worker does not allow leaves the request open, with the reason', () => {
    const refused = end(checking(), { ok: false, message: `no${'x'.repeat(600)}` });
    expect(requestOf(refused)).toMatchObject({ id: 'r1' });
    expect(requestOf(refused)).not.toHaveProperty('checking');
    expect(requestOf(refused).refused).toMatch(/^nox+/);
    const reasons = presentRequest(requestOf(refused)).reasons.map(([name]) => name);
    expect(reasons).toContain('last decision');
    expect(nextAction(refused, undefined, 30)).toEqual({ type: 'await-decision' });
    expect(refused.decisions).toEqual([
      {
        what: 'resolve',
        id: 'u r1',
        at: 10,
        by: 'ann',
        request: 'r1',
        call: ID,
        as: 'approve',
        refused: `no${'x'.repeat(498)}`,
      },
    ]);
  });

  test.each([
    ['edit', { arguments: {} }],
    ['answer', { result: 'x' }],
  ])('does not count if the check has no result that allows it to %s with', (as, rest) => {
    const state = end(checking(as, rest), { ok: true });
    expect(requestOf(state).id).toBe('r1');
    expect(state.decisions).toMatchObject([{ as, refused: 'the check brought no result' }]);
    expect(results(state)).toEqual([]);
  });

  test('that cannot be checked leaves the request open', () => {
    const state = checking();
    const lost = after(state, failed(checkOf(state), 'no worker', null, 20));
    expect(lost.decisions?.[0]?.refused).toBe('the decision could not be checked: no worker');
    const off = after(state, canceled(checkOf(state), 20));
    expect(off.decisions?.[0]?.refused).toBe(
      'the decision could not be checked: the check was canceled',
    );
    for (const each of [lost, off]) expect(requestOf(each)).toMatchObject({ id: 'r1' });
  });

  test('in time counts even if its request has expired meanwhile', () => {
    const state = end(checking(), { ok: true }, 200);
    expect(workOf(state, ID)).toEqual({ approved: true, phase: 'waiting' });
  });

  test('that the worker does not allow lets the request expire if its time is over', () => {
    const state = end(checking(), { ok: false, message: 'no' }, 200);
    expect(openRequests(state, 'run')).toEqual([]);
    expect(results(state)[0]).toContain('no decision within 100 ms');
    expect(state.decisions).toMatchObject([{ refused: 'no' }, { as: 'expired', at: 200 }]);
  });

  test('that the worker does not allow leaves its call to the interruption of the turn', () => {
    const state = after(checking(), update('cancelTurn', {}, 'c', 15));
    const refused = end(state, { ok: false, message: 'no' }, 200);
    expect(refused.decisions?.map(({ as }) => as)).toEqual([undefined, 'approve']);
    expect(nextAction(refused)).toEqual({ type: 'interrupt', by: 'cancelTurn' });
  });

  test('excludes others: one that arrives meanwhile changes nothing', () => {
    const state = checking();
    const other = update('resolve', { request: 'r1', digest: 'd', as: 'deny' }, 'v', 12);
    expect(after(state, other)).toEqual(state);
  });

  test('changes nothing if the request has changed when its check ends', () => {
    const state = checking();
    const old = { activity: 'checkDecision', input: { work: ID, request: { id: 'r0' } } };
    expect(after(state, completed(old, { ok: true }, 20))).toEqual(state);
    const gone = { activity: 'checkDecision', input: { work: 'limit', request: { id: 'r1' } } };
    expect(after(state, completed(gone, { ok: true }, 20))).toEqual(state);
    const open = end(state, { ok: false, message: 'no' });
    expect(after(open, completed(checkOf(open), { ok: true }, 30))).toEqual(open);
  });
});

describe('a decision about a changed tool', () => {
  const task = toolTask(runWithCall('look'), 0);
  const probe = toolTask(runWithCall('look'), 0, { blocked: 'tool_changed' });
  const changed = after(
    runWithCall('look'),
    scheduled(task),
    blocked(task, 'tool_changed', { definition: 'd' }),
  );

  test('waits while the call is retried, because the tool may have changed back', () => {
    const trying = after(changed, scheduled(probe));
    const proposed = after(trying, decision(trying, 'accept', {}, { at: 5 }));
    expect(proposed.accepted).toBeUndefined();
    expect(requestOf(proposed)).toMatchObject({ id: 'r1', checking: true });
    const same = after(proposed, blocked(probe, 'tool_changed', { definition: 'd' }, 6));
    const done = after(same, scheduled(checkOf(same)), completed(checkOf(same), { ok: true }, 7));
    expect(done.accepted).toEqual({ look: 'd' });
    expect(done.decisions).toMatchObject([{ as: 'accept', at: 5 }]);
    const back = after(proposed, completed(probe, { ok: true, text: 'seen' }, 6));
    expect([results(back), back.accepted]).toEqual([['seen'], undefined]);
  });

  test('that does not count leaves the call to its next attempt', () => {
    const trying = after(changed, scheduled(probe));
    const proposed = after(trying, decision(trying, 'accept'));
    const same = after(proposed, blocked(probe, 'tool_changed', { definition: 'd' }, 6));
    const no = after(same, completed(checkOf(same), { ok: false, message: 'no' }, 7));
    expect(workOf(no, ID)).toMatchObject({ phase: 'waiting', block: { reason: 'tool_changed' } });
    expect(requestOf(no)).toMatchObject({ id: 'r1', kind: 'tool_changed' });
    expect(no.accepted).toBeUndefined();
  });
});
