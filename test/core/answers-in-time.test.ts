import { describe, expect, test } from 'vitest';
import { askRefusal } from '../../src/core/run/ask.js';
import { decisionProblem } from '../../src/core/requests/refusal.js';
import { actions, CALL, waiting } from '../support/asking-graph.js';
import { after, update } from '../support/facts.js';
import { requestOf } from '../support/pending-call.js';

const NOW = { id: 'new', now: 9 };

describe('a request that expires', () => {
  const state = waiting({ plan: 'plan', expiresMs: 10 });
  const { digest } = requestOf(state, CALL);

  test.each([{}, { answers: { request: 'r1', digest } }])(
    'is not answered from its last moment on, even before its timer has fired: %j',
    (rest) => {
      const ask = { message: 'yes', id: 'n', ...rest };
      expect(askRefusal(state, ask, { id: 'n', now: 14 })).toBeNull();
      expect(askRefusal(state, ask, { id: 'n', now: 15 })).toMatchObject({ reason: 'expired' });
      // A worker that comes back gets the signal before the timer.
      const late = after(state, { type: 'signal', name: 'message', input: ask, at: 15 });
      expect(late.decisions).toMatchObject([{ as: 'expired' }]);
      expect(actions(late)).toEqual([]);
      const made = { request: 'r1', digest, as: 'approve' };
      expect(decisionProblem(state, made, { update: 'u', now: 15 })).toMatchObject({
        reason: 'expired',
      });
    },
  );
});

describe('a message for the turn under way', () => {
  const state = waiting({ plan: 'plan' });
  const { digest } = requestOf(state, CALL);

  test.each([
    { message: 'yes', input: { topic: 'x' } },
    { message: 'yes', input: { topic: 'x' }, answers: { request: 'r1', digest } },
    { message: 'more', input: { topic: 'x' }, mode: 'steer' },
    { message: 'yes', refresh: true },
  ] as const)('cannot bring what only the start of a turn reads: %j', (ask) => {
    const graph = state.config.definition.graph ?? null;
    if (graph === null) throw new Error('no graph');
    const definition = {
      ...state.config.definition,
      graph: { ...graph, fields: ['plan', 'topic'] },
    };
    const begins = { ...state, config: { ...state.config, definition } };
    expect(askRefusal(begins, ask, NOW)?.message).toMatch(/^(input|refresh): a (graph|turn)/);
    const next = after(begins, {
      type: 'signal',
      name: 'message',
      input: { ...ask, id: 'n' },
      at: 9,
    });
    expect(next.decisions).toBeUndefined();
    expect(next.inbox.refused).toHaveLength(1);
    const other = { message: 'more', input: { topic: 'x' } };
    expect(askRefusal(waiting({}), other, NOW)?.message).toContain('no such field');
  });
});

test('the first of many decisions about one request wins, whichever way each arrives', () => {
  const state = waiting({ plan: 'plan' });
  const { digest } = requestOf(state, CALL);
  const answers = { request: 'r1', digest };
  let now = state;
  const accepted: string[] = [];
  for (let index = 0; index < 32; index += 1) {
    const id = `d${index}`;
    const by = `person ${index}`;
    const made = { request: 'r1', digest, as: index % 2 === 0 ? 'deny' : 'approve', by };
    const ask = { message: index % 2 === 0 ? 'yes' : 'no', by, answers };
    const isMessage = index % 3 === 0;
    const problem = isMessage
      ? askRefusal(now, ask, { id, now: 9 })
      : decisionProblem(now, made, { update: id, now: 9 });
    if (problem === null) accepted.push(id);
    now = after(now, update(isMessage ? 'ask' : 'resolve', isMessage ? ask : made, id, 9));
  }
  expect(accepted).toEqual(['d0']);
  expect(now.decisions).toMatchObject([{ id: 'd0', by: 'person 0' }]);
  expect(actions(now)).toEqual(['a1', 'a2']);
});

test('a digest holds in its own run alone', () => {
  const [one, other] = ['first', 'fork'].map((firstRunId) => {
    return { ...waiting({ plan: 'plan' }), firstRunId };
  });
  if (one === undefined || other === undefined) throw new Error('no runs');
  const { digest } = requestOf(one, CALL);
  const answers = { request: 'r1', digest };
  expect(askRefusal(one, { message: 'yes', answers }, NOW)).toBeNull();
  expect(askRefusal(other, { message: 'yes', answers }, NOW)).toMatchObject({
    reason: 'wrong_digest',
  });
});

test('a graph goes on by `expired` if its node has that exit, as the request says', () => {
  const leaves = waiting({ expiresMs: 10 }, { open: false, exits: { expired: 'end' } });
  expect(requestOf(leaves, CALL)).toMatchObject({ onExpiry: 'expired' });
  expect(requestOf(waiting({ expiresMs: 10 }), CALL)).toMatchObject({ onExpiry: 'deny' });
});

describe('an unclear answer to a graph is refused at once', () => {
  const decide = (state: ReturnType<typeof waiting>, result: string) => {
    const { digest } = requestOf(state, CALL);
    const made = { request: 'r1', digest, as: 'answer', result };
    return decisionProblem(state, made, { update: 'u', now: 9 });
  };

  test('to a question for yes or no', () => {
    expect(decide(waiting({}), 'perhaps')).toEqual({
      reason: 'malformed',
      message: 'result: expected "yes" or "no", got "perhaps"',
    });
    expect(decide(waiting({}), 'Yes.')).toBeNull();
    for (const plan of [{}, { plan: 'plan' }]) {
      const { message } = decide(waiting(plan), 'no, it rains') ?? {};
      expect(message).toContain('got "no, it rains": the reason of a no is the note of `deny`');
    }
  });

  test('to a plan', () => {
    const { message } = decide(waiting({ plan: 'plan' }), 'some a9') ?? {};
    expect(message).toMatch(
      /^result: expected "yes", .*got "some a9": the plan has no action "a9"; the actions are a1, a2$/,
    );
    expect(decide(waiting({ plan: 'plan' }), 'some a1')).toBeNull();
  });
});

test('the first digits of a digest are refused with the form that a program gives', () => {
  const state = waiting({});
  const digest = requestOf(state, CALL).digest.slice(0, 12);
  const made = { request: 'r1', digest, as: 'deny' };
  expect(decisionProblem(state, made, { update: 'u', now: 9 })).toMatchObject({
    reason: 'wrong_digest',
    message: expect.stringMatching(/^digest: expected all 64 hex digits/),
  });
});

test('a message does not pass as a decision that the run has made, by its id', () => {
  const state = waiting({ plan: 'plan' });
  const made = { what: 'resolve', id: 'u', at: 1, request: 'r0', as: 'approve' } as const;
  const proposal = {
    id: 'u',
    decision: { request: 'r1', digest: '', as: 'answer' },
    at: 1,
  } as const;
  const busy = {
    ...state,
    decisions: [made],
    work: state.work.map((one) => ({ ...one, proposal })),
  };
  const { digest } = requestOf(state, CALL);
  const ask = { message: 'yes', answers: { request: 'r1', digest } };
  expect(askRefusal(busy, ask, { id: 'u', now: 9 })).toMatchObject({ reason: 'checking' });
});
