import { expect, test } from 'vitest';
import { newDecisionProblem } from '../../src/core/requests/refusal.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { stateMemo } from '../../src/core/requests/request-memo.js';
import { shownStatus } from '../../src/core/run/status.js';
import type { RunState } from '../../src/core/state/state.js';
import { replied } from '../support/facts.js';
import { afterNextAction } from '../support/pending-call.js';
import { begun, callReply, config } from '../support/scripts.js';

const OPEN = 100;
/** What an inbox shows of one run. */
const NOTES = 20;

/** Returns a run with many open requests, and how many of them were built since the last question. */
function waitingRun(): { state: RunState; built: () => number } {
  const { calls = [], ...reply } = callReply(
    ...Array.from({ length: OPEN }, (_, part) => ['put', { part }] as const),
  );
  const verdict = { then: 'ask', why: 'a rule' } as const;
  const asked = afterNextAction(
    replied(begun(config()), { ...reply, calls: calls.map((call) => ({ ...call, verdict })) }),
  );
  let count = 0;
  const work = asked.work.map((one) => {
    if (one.request === undefined) return one;
    // Whoever shows a request reads why it was raised.
    const request = Object.defineProperty({ ...one.request }, 'why', {
      get: () => {
        count += 1;
        return 'a rule';
      },
    });
    return { ...one, request };
  });
  const built = (): number => {
    const since = count;
    count = 0;
    return since;
  };
  built();
  return { state: { ...asked, work }, built };
}

test('a decision about one of many requests does not build the others', () => {
  const { state, built } = waitingRun();
  const requests = openRequests(state, 'run');
  expect(requests).toHaveLength(OPEN);
  expect(built()).toBe(OPEN);
  const [, second] = requests;
  const decision = { request: second?.id, digest: second?.digest, as: 'deny' };
  expect(newDecisionProblem(state, decision, 0)).toBeNull();
  expect(built()).toBeLessThanOrEqual(2);
});

test('what a run publishes builds only the requests that it shows', () => {
  const { state, built } = waitingRun();
  const memo = stateMemo(state, 'run');
  expect(memo).toMatchObject({ requestsTotal: OPEN });
  expect(memo.requests).toHaveLength(NOTES);
  expect(built()).toBe(NOTES);
  expect(shownStatus(state, null)).toEqual({
    agent: state.config.definition.name,
    status: 'waiting_decision',
    reason: 'approval',
  });
  expect(built()).toBe(0);
});
