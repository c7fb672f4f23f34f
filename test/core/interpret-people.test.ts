import { describe, expect, test } from 'vitest';
import { unloadedConfig } from '../../src/core/definition/initial-config.js';
import { nextAction } from '../../src/core/next-action.js';
import { initialState, type RunState } from '../../src/core/state.js';
import type { AskedCall } from '../../src/core/transcript/messages.js';
import {
  after,
  blocked,
  completed,
  failed,
  model,
  replied,
  results,
  scheduled,
  toolTask,
  update,
  workOf,
} from '../support/facts.js';
import { asks, begun, config } from '../support/scripts.js';

const start = begun(config());
const ID = 'call_1_1_0';

function asked(name: string, rest: Partial<AskedCall> = {}): RunState {
  const [call] = asks([name]).calls ?? [];
  return replied(start, { ...asks(), calls: call ? [{ ...call, ...rest }] : [] });
}
const doubtful = (): RunState => {
  const state = asked('pay');
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

  test('cancels the turn under way, and says which', () => {
    const state = after(start, update('cancelTurn', {}, 'u'));
    expect(state.decisions).toEqual([{ what: 'cancelTurn', id: 'u', at: 0, turn: 1 }]);
    expect(state.turn.interruption).toBe('cancelTurn');
    expect(nextAction(state)).toEqual({ type: 'interrupt', by: 'cancelTurn' });
  });

  test('closes the run', () => {
    const state = after(start, update('close'));
    expect([state.ending, state.decisions?.[0]?.what]).toEqual(['closed', 'close']);
  });

  test('sets limits, without the name of who set them', () => {
    const state = after(start, update('setLimits', { steps: 3, by: 'ann', run: { tokens: 5 } }));
    expect(state.config.limits).toEqual({ turn: { steps: 3, toolCalls: 200 }, run: { tokens: 5 } });
    expect(state.decisions).toMatchObject([{ what: 'setLimits', by: 'ann' }]);
    expect(after(start, { ...update('setLimits'), input: null } as never).config.limits).toEqual(
      start.config.limits,
    );
  });

  test('of another name, and without an object, means nothing', () => {
    expect(after(start, update('outcome', { turn: 1 }))).toEqual(start);
    for (const name of ['ask', 'resolve']) {
      const state = after(start, { type: 'update', name, id: 'u', input: null, at: 0 });
      expect(state.inbox).toEqual(start.inbox);
      expect(state.work).toEqual(start.work);
    }
  });

  test('about limits waits for the agent, whose price and limits are not known', () => {
    const unloaded = initialState(unloadedConfig('a'));
    const tokens = update('setLimits', { tokens: 5, by: 'ann' }, 'u1');
    const money = update('setLimits', { costUsd: 2, run: { costUsd: 1 } }, 'u2');
    const both = after(unloaded, tokens, money);
    expect(both.limitsAsked).toHaveLength(2);
    expect(both.decisions).toBeUndefined();
    const task = { activity: 'loadAgent', input: { local: true } };
    const unpriced = after(both, completed(task, config()));
    expect(unpriced.config.limits).toEqual({
      turn: { steps: 50, toolCalls: 200, tokens: 5 },
      run: {},
    });
    expect(unpriced.decisions).toEqual([{ what: 'setLimits', id: 'u1', at: 0, by: 'ann' }]);
    expect(unpriced).not.toHaveProperty('limitsAsked');
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
  test('by update has the id that its sender gave it, else that of the update', () => {
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

  test('by signal is taken or refused; any other signal means nothing', () => {
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
    const resolve = (as: string, rest: object = {}) =>
      after(state, update('resolve', { call: ID, as, ...rest }, 'u', 9));
    const happened = resolve('happened', { result: { paid: 1 } });
    expect(results(happened)).toEqual(['{"paid":1}']);
    expect(happened.transcript.messages.at(-1)?.at).toBe(9);
    expect(happened.work).toEqual([]);
    expect(happened.decisions).toEqual([
      { what: 'resolve', id: 'u', at: 9, call: ID, as: 'happened' },
    ]);
    expect(results(resolve('abandon'))[0]).toContain('a person decided to give it up');
    const again = resolve('retry');
    expect(workOf(again, ID)).toEqual({ key: 'key 0', retried: true, phase: 'waiting' });
    expect(nextAction(again).type).toBe('run-calls');
  });

  test('remembers how often the call did not start', () => {
    const state = asked('pay');
    const task = toolTask(state, 0);
    const lost = after(
      state,
      scheduled(task),
      completed(task, { ok: 'not_started', message: '' }),
      scheduled(task),
      failed(task, 'x'),
    );
    const again = after(lost, update('resolve', { call: ID, as: 'retry' }));
    expect(workOf(again, ID)).toEqual({ key: 'key 0', starts: 1, retried: true, phase: 'waiting' });
  });

  test('means nothing for a call that does not wait for a decision', () => {
    const state = asked('pay');
    const running = after(state, scheduled(toolTask(state, 0)));
    for (const call of [ID, 'call_9_9_9']) {
      const { decisions: _, ...rest } = after(running, update('resolve', { call, as: 'abandon' }));
      expect(rest).toEqual(running);
    }
  });

  test('accepts the new form of a tool, and tries all that is blocked at once', () => {
    const state = asked('look');
    const changed = after(
      state,
      scheduled(toolTask(state, 0)),
      blocked(toolTask(state, 0), 'tool_changed', { definition: 'd' }),
    );
    const accepted = after(changed, update('resolve', { call: ID, as: 'accept', definition: 'd' }));
    expect(accepted.accepted).toEqual({ look: 'd' });
    expect(workOf(accepted, ID)).toEqual({ probeMs: 30_000, phase: 'waiting' });
    const over = after(
      after(start, scheduled(model()), blocked(model(), 'quota')),
      update('resolve', { call: ID, as: 'accept' }),
    );
    expect(over.accepted).toBeUndefined();
    expect(workOf(over, 'model')).not.toHaveProperty('block');
    const other = after(
      start,
      scheduled(model()),
      blocked(model(), 'quota'),
      update('resolve', { call: ID, as: 'retry' }),
    );
    expect(workOf(other, 'model')).toHaveProperty('block');
  });
});

describe('a call with safety checks', () => {
  const safety = [{ id: 'c1', code: 'risky', message: 'look twice' }, { id: 'c2' }];

  test('waits for a person before it is executed', () => {
    const state = asked('put', { safety });
    const action = nextAction(state);
    expect(action).toMatchObject({ type: 'ask-person', call: { id: ID } });
  });

  test('is executed once a person has acknowledged them, and the model reads so', () => {
    const state = asked('put', { safety });
    const asking = {
      ...state,
      work: [{ name: ID, phase: 'asking', about: 'safety_check', message: 'x' } as const],
    };
    const known = after(asking, update('resolve', { call: ID, as: 'retry' }));
    expect(workOf(known, ID)).toEqual({ acknowledged: true, phase: 'waiting' });
    expect(nextAction(known).type).toBe('run-calls');
    const task = toolTask(state, 0);
    const running = after(known, scheduled(task));
    expect(workOf(running, ID)).toMatchObject({ acknowledged: true, phase: 'in-flight' });
    const done = after(running, completed(task, { ok: true, text: 'done' }));
    expect(done.transcript.messages.at(-1)).toMatchObject({ acknowledged: true });
    const refused = after(asking, update('resolve', { call: ID, as: 'abandon' }));
    expect(results(refused)[0]).toContain('who decided against it');
    expect(refused.turn.spent.toolCalls).toBe(0);
  });
});

test('a call without checks has nothing that a person acknowledged', () => {
  const state = asked('put');
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
