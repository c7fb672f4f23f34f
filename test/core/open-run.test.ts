import { describe, expect, test } from 'vitest';
import { askProblem, acceptMessage } from '../../src/core/run/ask.js';
import { childBudget } from '../../src/core/run/complete-batch.js';
import { nextDeadline } from '../../src/core/rules/limits.js';
import { MAX_WAITING, REMEMBERED_IDS, findTurnOfMessage } from '../../src/core/input/inbox.js';
import { parseRunInput } from '../../src/core/input/input.js';
import { migrate, STATE_VERSION } from '../../src/core/segments/migrations.js';
import { nextAction } from '../../src/core/run/next-action.js';
import { reduce } from '../../src/core/run/reduce.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import {
  callReply,
  begun,
  config,
  textReply,
  TOOLS,
  toolDefinition,
  withResults,
} from '../support/scripts.js';
import { getOpenBatch } from '../../src/core/state/turn.js';
import { refusalText } from '../support/refusal-text.js';

const open = (rest = {}): RunState => initialState({ ...config(), ...rest }, { open: true });

function withMessages(state: RunState, ...texts: readonly string[]): RunState {
  return texts.reduce((before, text) => {
    const { event } = acceptMessage(before, { message: text }, text);
    return event === null ? before : reduce(before, event);
  }, state);
}

describe('a message', () => {
  test.each([
    [undefined, 'expected an object'],
    ['hi', 'expected an object'],
    [{}, 'message: expected a string'],
    [{ message: ' ' }, 'message: expected text'],
    [{ message: 'x', mode: 'now' }, 'expected "queue" or "steer"'],
    [{ message: 'x', id: '' }, 'id: expected a string of 1–200 characters'],
    [{ message: 'x', id: 'i'.repeat(201) }, 'id: expected a string of 1–200 characters'],
    [{ message: 'x', pin: 1 }, 'expected true or false'],
    [{ message: 'x', urgent: true }, 'ask.urgent: expected one of message'],
    [{ message: '字'.repeat(100_000) }, 'expected at most 262144 bytes, got 300000'],
    [{ message: 'x'.repeat(20_000), pin: true }, 'a pinned message'],
  ])('that is invalid is refused with the reason: %j', (value, reason) => {
    expect(askProblem(value)).toContain(reason);
  });

  test('is refused while too many wait, and accepted again later', () => {
    const long = 'x'.repeat(200_000);
    let state = withMessages(open(), `1${long}`, `2${long}`);
    expect(refusalText(state, { message: long }, 'new')).toContain(
      '2 messages are already waiting',
    );
    state = reduce(state, { type: 'turn-begun', at: 0 });
    expect(refusalText(state, { message: long }, 'new')).toBeNull();
    const many = withMessages(
      open(),
      ...Array.from({ length: MAX_WAITING.messages }, (_, n) => `m${n}`),
    );
    expect(refusalText(many, { message: 'x' }, 'new')).toContain('already waiting');
  });

  test('is recognized by its id for a thousand further messages', () => {
    let state = withMessages(open(), 'first');
    for (let n = 0; n < REMEMBERED_IDS - 1; n += 1) {
      state = reduce(withMessages(state, `m${n}`), { type: 'turn-begun', at: 0 });
    }
    expect(findTurnOfMessage(state.inbox, 'first')).toBe(1);
    expect(findTurnOfMessage(withMessages(state, 'one more').inbox, 'first')).toBeNull();
  });

  test('that was received before is accepted even by a closed run', () => {
    const state = reduce(withMessages(open(), 'a'), { type: 'end-requested', by: 'closed' });
    expect(refusalText(state, { message: 'a' }, 'a')).toBeNull();
    expect(refusalText(state, { message: 'b' }, 'b')).toContain('no more messages');
  });
});

describe('the end of an open run', () => {
  test('a cancel takes precedence over other ends, and a weaker one does not replace a close', () => {
    const cancelled = reduce(open(), { type: 'end-requested', by: 'cancelled' });
    expect(reduce(cancelled, { type: 'end-requested', by: 'closed' }).ending).toBe('cancelled');
    expect(reduce(cancelled, { type: 'end-requested', by: 'wallMs' }).ending).toBe('cancelled');
    const closed = reduce(open(), { type: 'end-requested', by: 'closed' });
    expect(reduce(closed, { type: 'end-requested', by: 'wallMs' }).ending).toBe('wallMs');
  });
});

describe('a new agent', () => {
  test('is loaded before the turn of the message that requests it, and only then', () => {
    const { event } = acceptMessage(open(), { message: 'x', refresh: true }, 'x');
    const waiting = event === null ? open() : reduce(open(), event);
    expect(nextAction(waiting).type).toBe('refresh-agent');
    const definition = { ...config().definition, instructions: 'be long', hash: 'new' };
    const fresh = { ...config(), definition };
    const state = reduce(waiting, { type: 'agent-refreshed', config: fresh });
    // A message that joins the waiting one belongs to the same turn, which loads the agent once.
    const joined = acceptMessage(
      withMessages(open(), 'first'),
      { message: 'x', mode: 'steer', refresh: true },
      'x',
    );
    const both =
      joined.event === null ? open() : reduce(withMessages(open(), 'first'), joined.event);
    expect(nextAction(both).type).toBe('refresh-agent');
    const taken = reduce(both, { type: 'agent-refreshed', config: null });
    expect(nextAction(taken).type).toBe('begin-turn');
    expect(state.config.definition.hash).toBe('new');
    expect(nextAction(state).type).toBe('begin-turn');
    expect(nextAction(reduce(waiting, { type: 'agent-refreshed', config: null })).type).toBe(
      'begin-turn',
    );
  });
});

describe('deadlines', () => {
  const limits = { turn: { wallMs: 100 }, run: { wallMs: 250 } };
  const at = (state: RunState): RunState => ({ ...state, config: { ...state.config, limits } });

  test('of a turn start with the turn, and those of a run with the run', () => {
    const idle = at({ ...open(), startedAt: 1_000 });
    expect(nextDeadline(idle)).toEqual({ at: 1_250, of: 'run' });
    const busy = reduce(withMessages(idle, 'a'), { type: 'turn-begun', at: 1_020 });
    expect(nextDeadline(busy)).toEqual({ at: 1_120, of: 'turn' });
    const late = reduce(withMessages(idle, 'a'), { type: 'turn-begun', at: 1_200 });
    expect(nextDeadline(late)).toEqual({ at: 1_250, of: 'run' });
    const over = reduce(busy, { type: 'turn-interrupted', by: 'wallMs', at: 1_120 });
    expect(nextDeadline(over)).toEqual({ at: 1_250, of: 'run' });
  });

  test('do not exist without a wall-time limit', () => {
    expect(nextDeadline(open())).toBeNull();
  });
});

describe('the budget of a called agent', () => {
  const expert = toolDefinition('expert', 'keyed', { kind: 'agent' });
  const withExpert = (tokens: number): RunState => {
    const runConfig = config({ tools: [...TOOLS, expert], limits: { tokens } });
    const reply = callReply(['expert', { n: 1 }], ['expert', { n: 2 }], ['look']);
    return reduce(begun(runConfig), { type: 'model-replied', reply, at: 0 });
  };

  test('is an equal share of what the caller has left after its own next call', () => {
    const state = withExpert(10_000);
    const { tokens } = childBudget(state, 0);
    const left = 10_000 - 15 - state.transcript.tokens;
    expect(tokens).toBe(Math.floor((left - 1_024) / 2));
  });

  test('is never zero or less, which would mean no limit', () => {
    expect(childBudget(withExpert(600), 0).tokens).toBe(1);
    expect(childBudget(begun(config()), 0)).toEqual({});
  });

  test('counts against the caller', () => {
    const usage = { inputTokens: 7, outputTokens: 3, cachedTokens: 0, costUsd: null };
    const state = withExpert(10_000);
    const [call] = getOpenBatch(state)?.calls ?? [];
    const result = { id: call?.id ?? '', ok: true, text: 'x', executed: true, usage };
    const next = withResults(state, [result]);
    expect(next.total.usage).toMatchObject({ inputTokens: 17, outputTokens: 8, costUsd: null });
  });
});

describe('carried state', () => {
  test('of an older form is migrated step by step', () => {
    const steps = {
      0: (older: Record<string, unknown>) => ({ ...older, schema: 0.5, a: 1 }),
      0.5: (older: Record<string, unknown>) => ({ ...older, schema: 1, b: 2 }),
    };
    expect(migrate({ schema: 0 }, steps, 1)).toEqual({ schema: 1, a: 1, b: 2 });
  });

  test.each([[STATE_VERSION + 1], ['x'], [undefined]])(
    'of form %s waits for a version that can read it',
    (schema) => {
      expect(() => migrate({ schema })).toThrow('deploy the version that wrote it');
    },
  );
});

describe('a run’s input', () => {
  test.each([
    [{ agent: 'a', open: true }, null],
    [{ agent: 'a' }, '"open": true'],
    [{ agent: 'a', open: 'yes', message: 'x' }, 'expected true or false'],
    [{ agent: 'a', message: 'x', depth: -1 }, 'depth: expected a whole number'],
    [{ agent: 'a', message: 'x', budget: { tokens: 0 } }, 'budget.tokens'],
    [{ agent: 'a', message: 'x', archive: 1 }, 'archive'],
  ])('is checked field by field: %j', (value, problem) => {
    const input = parseRunInput(value);
    if (problem === null) expect(input).toEqual(value);
    else expect('problem' in input && input.problem).toContain(problem);
  });
});

test('an answer does not end the turn if a message has joined it meanwhile', () => {
  const state = reduce(withMessages(open(), 'a'), { type: 'turn-begun', at: 0 });
  const { event } = acceptMessage(state, { message: 'b', mode: 'steer' }, 'b');
  const steered = event === null ? state : reduce(state, event);
  const answered = reduce(steered, { type: 'model-replied', reply: textReply('x'), at: 0 });
  expect(nextAction(answered).type).toBe('join-messages');
});
