import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/rules/limits.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { openRequests } from '../../src/core/requests/open-requests.js';
import { decisionProblem } from '../../src/core/requests/refusal.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import { afterNextAction, runWithCall, decision, ID, requestOf } from '../support/pending-call.js';
import {
  after,
  blocked,
  completed,
  failed,
  replied,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { callReply, begun, config } from '../support/scripts.js';

const start = begun(config());
const ARRIVAL = { update: 'another', now: 0 };

const doubtful = (): RunState => {
  const state = runWithCall('pay');
  return after(state, scheduled(toolTask(state, 0)), failed(toolTask(state, 0), 'gone'));
};

describe('a decision', () => {
  test('is recorded with who made it, and has no second effect', () => {
    const pause = update('pause', { by: 'ann' }, 'u1', 7);
    const paused = after(start, pause);
    expect(paused.paused).toBe(true);
    expect(paused.decisions).toEqual([{ what: 'pause', id: 'u1', at: 7, by: 'ann' }]);
    const resumed = after(paused, update('resume', {}, 'u2', 8));
    expect(resumed.paused).toBe(false);
    expect(resumed.decisions?.at(-1)).toEqual({ what: 'resume', id: 'u2', at: 8 });
    expect(after(resumed, pause)).toEqual(resumed);
    expect(after(resumed, update('pause', {}, 'u3')).paused).toBe(true);
  });

  test('names the interface that has verified its person', () => {
    const both = { by: 'ann', door: 'http' };
    const state = after(start, update('setLimits', { ...both, steps: 3 }, 'u'));
    expect(state.decisions).toEqual([
      { what: 'setLimits', id: 'u', at: 0, ...both, limits: 'steps=3' },
    ]);
    expect(state.config.limits.turn).toEqual({ steps: 3, toolCalls: 200 });
    const nobody = after(start, update('pause', { by: '', door: 'http' }, 'u'));
    expect(nobody.decisions).toEqual([{ what: 'pause', id: 'u', at: 0 }]);
  });

  test('cancels the current turn, and names it', () => {
    const state = after(start, update('cancelTurn', {}, 'u'));
    expect(state.decisions).toEqual([{ what: 'cancelTurn', id: 'u', at: 0, turn: 1 }]);
    expect(state.turn.interruption).toBe('cancelTurn');
    expect(nextAction(state)).toEqual({ type: 'interrupt', by: 'cancelTurn' });
  });

  test('closes the run', () => {
    const state = after(start, update('close'));
    expect([state.ending, state.decisions?.[0]?.what]).toEqual(['closed', 'close']);
  });

  test('sets limits, without the name of the person who set them', () => {
    const state = after(start, update('setLimits', { steps: 3, by: 'ann', run: { tokens: 5 } }));
    expect(state.config.limits).toEqual({ turn: { steps: 3, toolCalls: 200 }, run: { tokens: 5 } });
    expect(state.decisions).toMatchObject([{ what: 'setLimits', by: 'ann' }]);
    expect(after(start, { ...update('setLimits'), input: null } as never).config.limits).toEqual(
      start.config.limits,
    );
  });

  test('of another name, or without an object, is ignored', () => {
    expect(after(start, update('outcome', { turn: 1 }))).toEqual(start);
    for (const name of ['ask', 'resolve', 'undo', 'revoke']) {
      const state = after(start, { type: 'update', name, id: 'u', input: null, at: 0 });
      expect(state.inbox).toEqual(start.inbox);
      expect(state.work).toEqual(start.work);
    }
  });

  test('about limits waits for the agent, whose price and limits are not known yet', () => {
    const unloaded = initialState(unloadedConfig('a'));
    const tokens = update('setLimits', { tokens: 5, by: 'ann' }, 'u1');
    const money = update('setLimits', { costUsd: 2, run: { costUsd: 1 } }, 'u2');
    const both = after(unloaded, tokens, money);
    expect(both.requestedLimits).toHaveLength(2);
    expect(both.decisions).toBeUndefined();
    const task = { activity: 'loadAgent', input: { local: true } };
    const unpriced = after(both, completed(task, config()));
    expect(unpriced.config.limits).toEqual({
      turn: { steps: 50, toolCalls: 200, tokens: 5 },
      run: {},
    });
    expect(unpriced.decisions).toEqual([{ what: 'setLimits', id: 'u1', at: 0, by: 'ann' }]);
    expect(unpriced).not.toHaveProperty('requestedLimits');
    const priced = after(
      both,
      completed(task, config({ price: { input: 1, cachedInput: 1, output: 1 } })),
    );
    expect(priced.config.limits).toMatchObject({ turn: { costUsd: 2 }, run: { costUsd: 1 } });
    const one = after(unloaded, update('setLimits', { costUsd: 2 }), completed(task, config()));
    expect(one.decisions).toBeUndefined();
    const ofRun = update('setLimits', { run: { costUsd: 2 } });
    expect(after(unloaded, ofRun, completed(task, config())).decisions).toBeUndefined();
    expect(priced.decisions).toHaveLength(2);
  });
});

describe('a message', () => {
  test('by update has the id of its sender if there is one, otherwise that of the update', () => {
    const state = after(
      start,
      update('ask', { message: 'a', id: 'm' }, 'u1'),
      update('ask', { message: 'b', mode: 'steer' }, 'u2'),
    );
    expect(state.inbox.waiting).toEqual([
      { id: 'm', text: 'a', turn: 2 },
      { id: 'u2', text: 'b', turn: 1 },
    ]);
    expect(after(state, update('ask', { message: 'a', id: 'm' }, 'u3'))).toEqual(state);
  });

  test('that names a request and its digest decides about it, and is received too', () => {
    const asking = afterNextAction(runWithCall('put', { verdict: { then: 'ask', why: 'a rule' } }));
    const { id: request, digest } = requestOf(asking);
    const said = { message: 'yes', id: 'm', answers: { request, digest } };
    const state = after({ ...asking, open: true }, update('ask', said, 'u', 4));
    expect(workOf(state, ID)).toEqual({ approved: true, phase: 'waiting' });
    expect(state.decisions).toMatchObject([{ id: 'm', at: 4, request, as: 'approve' }]);
    expect(state.inbox.waiting).toMatchObject([{ id: 'm', text: 'yes' }]);
  });

  test('by signal is accepted or refused; any other signal is ignored', () => {
    const open = { ...start, open: true };
    const signal = (name: string, input: unknown) =>
      ({ type: 'signal', name, input, at: 7 }) as const;
    expect(after(open, signal('message', { message: 'a', id: 'm' })).inbox.waiting).toHaveLength(1);
    expect(after(open, signal('message', 'x')).inbox.refused).toMatchObject([{ id: null, at: 7 }]);
    expect(after(open, signal('other', { message: 'a', id: 'm' }))).toEqual(open);
    const twice = after(open, signal('message', { message: 'a', id: 'm' }));
    expect(after(twice, signal('message', { message: 'a', id: 'm' }))).toEqual(twice);
  });
});

describe('`resolve`', () => {
  test('decides about a call whose outcome is unknown', () => {
    const state = doubtful();
    expect(requestOf(state)).toMatchObject({ id: 'r1', kind: 'outcome_unknown', call: ID });
    const resolve = (as: string, rest: object = {}) =>
      after(state, decision(state, as, rest, { at: 9 }));
    const happened = resolve('happened', { result: { paid: 1 }, by: 'ann' });
    expect(results(happened)).toEqual(['{"paid":1}']);
    expect(happened.transcript.messages.at(-1)?.at).toBe(9);
    expect(happened.work).toEqual([]);
    expect(happened.decisions).toEqual([
      { what: 'resolve', id: 'u r1', at: 9, by: 'ann', request: 'r1', call: ID, as: 'happened' },
    ]);
    expect(results(resolve('abandon'))[0]).toContain('a person abandoned it');
    const again = resolve('retry');
    expect(workOf(again, ID)).toEqual({ key: 'key 0', retried: true, phase: 'waiting' });
    expect(nextAction(again).type).toBe('run-calls');
  });

  test('has no second effect, neither under the same id nor under another', () => {
    const state = doubtful();
    const retry = decision(state, 'retry');
    const again = after(state, retry);
    expect(after(again, retry)).toEqual(again);
    const late = update('resolve', { ...(retry as { input: object }).input, as: 'abandon' }, 'v');
    expect(after(again, late)).toEqual(again);
    expect(decisionProblem(again, (late as { input: object }).input, ARRIVAL)).toMatchObject({
      reason: 'decided',
    });
  });

  test('remembers how often the call did not start', () => {
    const state = runWithCall('pay');
    const task = toolTask(state, 0);
    const lost = after(
      state,
      scheduled(task),
      completed(task, { ok: 'not_started', message: '' }),
      scheduled(task),
      failed(task, 'x'),
    );
    const again = after(lost, decision(lost, 'retry'));
    expect(workOf(again, ID)).toEqual({ key: 'key 0', starts: 1, retried: true, phase: 'waiting' });
  });

  test('is ignored if it is not a decision', () => {
    const state = doubtful();
    for (const input of [null, 'r1', [null, 7], {}]) {
      const { work } = after(state, { type: 'update', name: 'resolve', id: 'u', input, at: 0 });
      expect(work).toEqual(state.work);
    }
  });

  test('is ignored for a request that is not open', () => {
    const state = runWithCall('pay');
    const running = after(state, scheduled(toolTask(state, 0)));
    for (const request of ['r1', 'r9', ID]) {
      const given = { request, digest: 'd', as: 'abandon' };
      expect(after(running, update('resolve', given))).toEqual(running);
      expect(decisionProblem(running, given, ARRIVAL)?.reason).toBe('unknown_request');
    }
  });

  test('decides about several requests at once', () => {
    const calls = callReply(['pay', { x: 1 }], ['pay', { x: 2 }]).calls ?? [];
    const verdict = { then: 'ask', why: 'rule' } as const;
    const two = afterNextAction(
      replied(start, { ...callReply(), calls: calls.map((call) => ({ ...call, verdict })) }),
    );
    const both = openRequests(two, 'run').map(({ id: request, digest }, index) => ({
      request,
      digest,
      as: index === 0 ? 'approve' : 'deny',
    }));
    expect(decisionProblem(two, both, ARRIVAL)).toBeNull();
    const given = after(two, { type: 'update', name: 'resolve', id: 'u', input: both, at: 3 });
    expect(given.work).toEqual([{ name: ID, approved: true, phase: 'waiting' }]);
    expect(given.decisions).toMatchObject([
      { request: 'r1', as: 'approve', id: 'u' },
      { request: 'r2', as: 'deny', id: 'u' },
    ]);
  });
});

describe('a tool that has changed', () => {
  const state = runWithCall('look');
  const task = toolTask(state, 0);
  const probe = toolTask(state, 0, { blocked: 'tool_changed' });
  const changed = after(
    state,
    scheduled(task),
    blocked(task, 'tool_changed', { definition: 'd' }, 5),
  );

  test('raises a request, and is retried at once when its new version is accepted', () => {
    expect(requestOf(changed)).toMatchObject({
      id: 'r1',
      kind: 'tool_changed',
      why: 'no tool_changed',
      definition: 'd',
      raisedAt: 5,
    });
    const accepted = after(changed, decision(changed, 'accept'));
    expect(accepted.accepted).toEqual({ look: 'd' });
    expect(workOf(accepted, ID)).toEqual({ probeMs: 30_000, phase: 'waiting' });
    const over = after(changed, decision(changed, 'deny', { note: 'never' }));
    expect(over.accepted).toBeUndefined();
    expect(results(over)[0]).toContain('not executed: a person denied it: never');
  });

  test('raises one request per version, and none if it has changed back', () => {
    const probing = after(changed, scheduled(probe));
    const same = after(probing, blocked(probe, 'tool_changed', { definition: 'd' }, 50_000));
    expect(requestOf(same)).toMatchObject({ id: 'r1', raisedAt: 5 });
    const other = after(probing, blocked(probe, 'tool_changed', { definition: 'e' }, 50_000));
    expect(requestOf(other)).toMatchObject({ id: 'r2', definition: 'e' });
    expect(requestOf(other).digest).not.toBe(requestOf(same).digest);
    const back = after(probing, completed(probe, { ok: true, text: 'seen' }));
    expect([back.work, results(back)]).toEqual([[], ['seen']]);
    expect(nextAction(same).type).toBe('run-calls');
  });

  test('cannot be accepted if its new version is unknown', () => {
    const worse = after(state, scheduled(task), blocked(task, 'tool_changed'));
    expect(openRequests(worse, 'run')).toEqual([]);
    expect(workOf(worse, ID)).toMatchObject({ block: { reason: 'tool_changed' } });
  });
});

describe('a call with safety checks', () => {
  const safety = [{ id: 'c1', code: 'risky', message: 'look twice' }, { id: 'c2' }];

  test('waits for a person before it is executed', () => {
    const state = runWithCall('put', { safety });
    const action = nextAction(state);
    expect(action).toMatchObject({ type: 'raise-requests', requests: [{ call: ID }] });
    const asking = afterNextAction(state, 7);
    expect(nextAction(asking)).toEqual({ type: 'await-decision' });
    expect(requestOf(asking)).toMatchObject({
      kind: 'safety_check',
      why: "the provider asks for a person's decision (risky: look twice; c2)",
      checks: safety,
      raisedAt: 7,
      decisions: ['approve', 'deny'],
    });
  });

  test('is executed once a person has acknowledged them, and the model is informed', () => {
    const state = runWithCall('put', { safety });
    const asking = afterNextAction(state);
    const known = after(asking, decision(asking, 'approve'));
    expect(workOf(known, ID)).toEqual({ approved: true, phase: 'waiting' });
    expect(nextAction(known).type).toBe('run-calls');
    const task = toolTask(state, 0);
    const running = after(known, scheduled(task));
    expect(workOf(running, ID)).toMatchObject({ approved: true, phase: 'in-flight' });
    const done = after(running, completed(task, { ok: true, text: 'done' }));
    expect(done.transcript.messages.at(-1)).toMatchObject({ acknowledged: true });
    const refused = after(asking, decision(asking, 'deny'));
    expect(results(refused)[0]).toContain('not executed: a person denied it');
    expect(refused.turn.spent.toolCalls).toBe(0);
  });
});

test('a call without checks has nothing that a person acknowledged', () => {
  const state = runWithCall('put');
  const done = after(
    state,
    scheduled(toolTask(state, 0)),
    completed(toolTask(state, 0), { ok: true, text: 'x' }),
  );
  expect(done.transcript.messages.at(-1)).not.toHaveProperty('acknowledged');
});

test('`resume` changes no work that is neither blocked nor in flight', () => {
  const state = doubtful();
  expect(after(state, update('resume')).work).toEqual(state.work);
});
