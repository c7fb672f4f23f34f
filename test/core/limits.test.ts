import { describe, expect, test } from 'vitest';
import { LIMIT_NAMES, type Limits, type LimitSet } from '../../src/core/definition/definition.js';
import { sumOf } from '../../src/cli/commands/limits.js';
import { limitAmount, limitOption } from '../../src/core/requests/limit-words.js';
import { raisedLimits } from '../../src/core/requests/raise-requests.js';
import {
  budgetLeft,
  callsLeft,
  definitionHash,
  effectiveLimits,
  hasOwnHash,
  isLoaded,
  limitReached,
  reserve,
  unloadedConfig,
  usedOf,
  withinBudget,
} from '../../src/core/rules/limits.js';
import { costOf, addReply } from '../../src/core/rules/spending.js';
import { initialState, type RunState } from '../../src/core/state/state.js';
import type { Spent, Turn } from '../../src/core/state/turn.js';
import { begun, config } from '../support/scripts.js';

const PRICE = { input: 125_000, cachedInput: 12_500, output: 250_000 };

/** A run with these limits whose turn has used this much. */
function having(
  limits: Limits,
  {
    spent = {},
    turn = {},
    tokens = 1_000,
    rest = {},
  }: {
    spent?: Partial<Spent>;
    turn?: Partial<Turn>;
    tokens?: number;
    rest?: Parameters<typeof config>[0];
  } = {},
): RunState {
  const state = begun(config({ limits, price: PRICE, ...rest }));
  const used = { ...state.turn.spent, ...spent };
  return {
    ...state,
    total: used,
    turn: { ...state.turn, spent: used, ...turn },
    transcript: { ...state.transcript, tokens },
  };
}

test('without a price, the costs that the provider reports are added; one missing makes the sum unknown', () => {
  const counts = { inputTokens: 5, outputTokens: 1, cachedTokens: 0 };
  const paid = (state: RunState, more: object) =>
    addReply(state, {
      reply: { text: '', finish: 'stop', usage: { ...counts, ...more } },
      deciding: true,
    });
  const once = paid(begun(config({ price: null })), { costUsd: 0.25 });
  const twice = paid(once, { costUsd: 0.5 });
  expect(twice.total.usage.costUsd).toBe(0.75);
  expect(twice.turn.spent.usage).toEqual({
    ...counts,
    inputTokens: 10,
    outputTokens: 2,
    costUsd: 0.75,
  });
  expect(paid(twice, {}).total.usage.costUsd).toBeNull();
  expect(
    paid(paid(begun(config({ price: null })), {}), { costUsd: 1 }).total.usage.costUsd,
  ).toBeNull();
});

const usage = (inputTokens: number, outputTokens: number, costUsd: number | null = 0) => ({
  usage: { inputTokens, outputTokens, cachedTokens: 0, costUsd },
});

describe('the limits in force', () => {
  test('are the agent’s, with the defaults and the lower ones of the input', () => {
    expect(effectiveLimits({}, {})).toEqual({ turn: { steps: 50, toolCalls: 200 }, run: {} });
    expect(effectiveLimits({ steps: 5 }, { steps: 5, tokens: 9 })).toEqual({
      turn: { steps: 5, toolCalls: 200, tokens: 9 },
      run: {},
    });
    expect(
      effectiveLimits({ toolCalls: null, run: { depth: 3 } }, { run: { depth: 2, wallMs: 7 } }),
    ).toEqual({
      turn: { steps: 50, toolCalls: null },
      run: { depth: 2, wallMs: 7 },
    });
    expect(effectiveLimits({ costUsd: null }, { costUsd: 3 })).toMatchObject({
      turn: { costUsd: 3 },
    });
  });

  test('are never raised by the input, which gets a note', () => {
    expect(effectiveLimits({ steps: 5 }, { steps: 6 })).toBe(
      "limits.steps: expected at most the agent's 5, got 6; a run may only lower it",
    );
    expect(effectiveLimits({ run: { tokens: 5 } }, { run: { tokens: null } })).toBe(
      "limits.run.tokens: expected at most the agent's 5, got null (none); a run may only lower it",
    );
    expect(effectiveLimits({ steps: 5 }, {})).toMatchObject({ turn: { steps: 5 } });
  });

  test('stay within a caller’s budget', () => {
    const limits = { turn: { steps: 5 }, run: { tokens: 50, depth: 2 } };
    expect(withinBudget(limits, { tokens: 60, costUsd: 1, wallMs: null })).toEqual({
      turn: { steps: 5 },
      run: { tokens: 50, depth: 2, costUsd: 1 },
    });
    expect(withinBudget(limits, { tokens: 40 }).run).toEqual({ tokens: 40, depth: 2 });
  });
});

describe('a limit', () => {
  test.each([
    [{ limit: 'wallMs' }, 'wallMs'],
    [{ limit: 'depth', failedSteps: 10 }, 'depth'],
    [{ sameRead: { digest: '', step: 1, count: 3 } }, 'no_progress'],
    [{ sameRead: { digest: '', step: 1, count: 2 } }, null],
    [{ failedSteps: 10 }, 'no_progress'],
    [{ failedSteps: 9 }, null],
    [{}, null],
  ] as const)('of a turn with %j is %s', (turn, reason) => {
    expect(limitReached(having({}, { turn }))).toBe(reason);
  });

  test('on steps counts those of the turn and of the run, but no repair', () => {
    const branch = { messages: 0, head: '', tokens: 0, promptTokens: 0 };
    for (const limits of [{ steps: 3 }, { run: { steps: 3 } }]) {
      expect(limitReached(having(limits, { spent: { steps: 2 } }))).toBeNull();
      expect(limitReached(having(limits, { spent: { steps: 3 } }))).toBe('steps');
      expect(
        limitReached(
          having(limits, { spent: { steps: 3 }, turn: { phase: { type: 'repairing', branch } } }),
        ),
      ).toBeNull();
    }
    const ofTurn = having({ steps: 3 }, { spent: { steps: 3 } });
    expect(
      limitReached({
        ...ofTurn,
        turn: { ...ofTurn.turn, spent: { ...ofTurn.turn.spent, steps: 1 } },
      }),
    ).toBeNull();
  });

  test('on tool calls is what the turn and the run have left', () => {
    expect(callsLeft(having({ toolCalls: 7 }, { spent: { toolCalls: 3 } }))).toBe(4);
    expect(
      callsLeft(having({ toolCalls: 9, run: { toolCalls: 5 } }, { spent: { toolCalls: 3 } })),
    ).toBe(2);
    expect(callsLeft(having({ toolCalls: null }))).toBe(Infinity);
  });

  test('on tokens or cost refuses a call for which nothing is left', () => {
    expect(limitReached(having({ tokens: 1_031 }))).toBe('tokens');
    expect(limitReached(having({ tokens: 1_032 }))).toBeNull();
    expect(limitReached(having({ costUsd: 125 }))).toBe('costUsd');
  });
});

describe('a budget', () => {
  const NONE = { maxOutputTokens: null, clippedBy: null, refusedBy: null };
  const clip = (maxOutputTokens: number, clippedBy: string) => ({
    maxOutputTokens,
    clippedBy,
    refusedBy: null,
  });
  const refuse = (refusedBy: string) => ({ ...NONE, refusedBy });

  test('on tokens reserves the prompt, and leaves the rest for the reply', () => {
    expect(reserve(having({}))).toEqual(NONE);
    expect(reserve(having({ tokens: 1_500 }))).toEqual(clip(500, 'tokens'));
    expect(reserve(having({ tokens: 1_500 }, { spent: usage(100, 40) }))).toEqual(
      clip(360, 'tokens'),
    );
    expect(reserve(having({ run: { tokens: 1_500 } }, { spent: usage(100, 40) }))).toEqual(
      clip(360, 'tokens'),
    );
    expect(reserve(having({ tokens: 1_500 }), 100)).toEqual(clip(400, 'tokens'));
    expect(reserve(having({ tokens: 1_032 }))).toEqual(clip(32, 'tokens'));
    expect(reserve(having({ tokens: 1_031 }))).toEqual(refuse('tokens'));
  });

  test('on cost reserves the price of the prompt', () => {
    // The prompt costs 125 USD, and 1,000 tokens of a reply 250 USD.
    expect(reserve(having({ costUsd: 375 }))).toEqual(clip(1_000, 'costUsd'));
    expect(reserve(having({ costUsd: 600 }, { spent: usage(0, 0, 100) }))).toEqual(
      clip(1_500, 'costUsd'),
    );
    expect(reserve(having({ costUsd: 375 }), 1_000)).toEqual(clip(500, 'costUsd'));
    expect(reserve(having({ costUsd: 375 }, { spent: usage(0, 0, null) }))).toEqual(
      clip(1_000, 'costUsd'),
    );
    expect(reserve(having({ costUsd: 5 }, { rest: { price: null } }))).toEqual(refuse('costUsd'));
  });

  test('on cost does not cap a reply that costs nothing', () => {
    const rest = { price: { ...PRICE, output: 0 } };
    expect(reserve(having({ costUsd: 125 }, { rest }))).toEqual(NONE);
    expect(reserve(having({ costUsd: 124 }, { rest }))).toEqual(refuse('costUsd'));
  });

  test('counts if it is the lowest of several', () => {
    expect(reserve(having({ tokens: 1_500, run: { tokens: 1_400 } }))).toEqual(clip(400, 'tokens'));
    expect(reserve(having({ tokens: 1_400, run: { tokens: 1_500 } }))).toEqual(clip(400, 'tokens'));
    expect(reserve(having({ tokens: 1_500, costUsd: 175 }))).toEqual(clip(200, 'costUsd'));
    expect(reserve(having({ tokens: 1_100, costUsd: 175 }))).toEqual(clip(100, 'tokens'));
    expect(reserve(having({ tokens: 1_200, costUsd: 175 })).clippedBy).toBe('tokens');
    expect(reserve(having({ tokens: null, costUsd: null }))).toEqual(NONE);
  });

  test('on cost is exact for cheap tokens', () => {
    const rest = { price: { input: 1, cachedInput: 1, output: 1 } };
    const state = having({ costUsd: 4 }, { rest, tokens: 2_000_000 });
    expect(reserve(state)).toEqual(clip(2_000_000, 'costUsd'));
  });

  test('on cost suffices for the dearest model that may answer', () => {
    const state = having({ costUsd: 375 });
    const highestPrice = { ...PRICE, output: 500_000 };
    const dearer = { ...state, config: { ...state.config, highestPrice } };
    expect(reserve(dearer)).toEqual(clip(500, 'costUsd'));
  });

  test.each<[Limits, object | null]>([
    [{}, null],
    [{ steps: 5, tokens: null, costUsd: null }, null],
    [{ tokens: 500 }, { tokens: 360 }],
    [{ costUsd: 9 }, { costUsd: 7 }],
    [
      { tokens: 500, run: { costUsd: 9 } },
      { tokens: 360, costUsd: 7 },
    ],
    [
      { tokens: 500, costUsd: 9, run: { tokens: 400, costUsd: 10 } },
      { tokens: 260, costUsd: 7 },
    ],
  ])('%j leaves %j', (limits, left) => {
    expect(budgetLeft(having(limits, { spent: usage(100, 40, 2) }))).toEqual(left);
  });

  test('on cost is untouched by usage of an unknown price', () => {
    expect(budgetLeft(having({ costUsd: 9 }, { spent: usage(1, 1, null) }))).toEqual({
      costUsd: 9,
    });
  });

  test('does not cap a reply below the settings', () => {
    const rest = (maxOutputTokens: number) => ({ rest: { settings: { maxOutputTokens } } });
    expect(reserve(having({ tokens: 1_500 }, rest(500)))).toEqual(NONE);
    expect(reserve(having({ tokens: 1_500 }, rest(501)))).toEqual(clip(500, 'tokens'));
  });
});

test('cached tokens have their own price, and only that', () => {
  const used = { inputTokens: 1_000_000, outputTokens: 500_000, cachedTokens: 400_000 };
  expect(costOf(used, PRICE)).toBe(75_000 + 5_000 + 125_000);
  expect(costOf(used, null)).toBeNull();
});

test('tokens written to the cache have their own price, or that of the input', () => {
  const used = { inputTokens: 1_000_000, cachedTokens: 500_000, outputTokens: 0 };
  const written = { ...used, cacheWriteTokens: 400_000 };
  expect(costOf(written, { ...PRICE, cacheWrite: 150_000 })).toBe(12_500 + 6_250 + 60_000);
  expect(costOf(written, PRICE)).toBe(costOf(used, PRICE));
});

test('what a turn and its run have used is counted for each limit', () => {
  const state = having({}, { spent: { steps: 2, toolCalls: 3, ...usage(100, 40, 0.5) } });
  const total = { ...state.total, steps: 7, toolCalls: 8, ...usage(1_000, 400, null) };
  const late: RunState = {
    ...state,
    total,
    startedAt: 1_000,
    turn: { ...state.turn, startedAt: 5_000 },
    config: { ...state.config, depth: 2 },
  };
  const used = (from: RunState, scope: 'turn' | 'run', at: number) =>
    LIMIT_NAMES.map((name) => [name, usedOf(name, { state: from, scope, at })]);
  expect(Object.fromEntries(used(late, 'turn', 6_000))).toEqual({
    steps: 2,
    toolCalls: 3,
    tokens: 140,
    costUsd: 0.5,
    wallMs: 1_000,
    depth: 2,
  });
  expect(Object.fromEntries(used(late, 'run', 6_000))).toEqual({
    steps: 7,
    toolCalls: 8,
    tokens: 1_400,
    costUsd: 0,
    wallMs: 5_000,
    depth: 2,
  });
  // A clock that was set back, and a run that no agent has called.
  const early = Object.fromEntries(used(state, 'turn', -1));
  expect(early).toMatchObject({ wallMs: 0, depth: 0 });
});

test('a carried definition has its own hash, and an agent that is not loaded has none', () => {
  const empty = {
    name: 'a',
    instructions: '',
    model: '',
    tools: [],
    toolChoice: 'auto',
    toolCalls: 'parallel',
    onLimit: 'answer',
    limits: {},
    settings: {},
    hash: '',
  } as const;
  const carried = (change: Partial<RunState['config']['definition']>): boolean => {
    const { config: own, ...state } = initialState(unloadedConfig('a'));
    return hasOwnHash({ ...state, config: { ...own, definition: { ...empty, ...change } } });
  };
  expect(isLoaded(initialState(unloadedConfig('a')))).toBe(false);
  expect(carried({})).toBe(true);
  expect(carried({ instructions: 'x' })).toBe(false);
  const loaded = { ...empty, instructions: 'be brief', model: 'm' };
  const hash = definitionHash(loaded);
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(carried({ ...loaded, hash })).toBe(true);
  expect(carried({ ...loaded, instructions: 'be long', hash })).toBe(false);
  expect(carried({ ...loaded, hash: 'a'.repeat(64) })).toBe(false);
});

test('all names of limits are checked, in sets of the turn and of the run', () => {
  const set: LimitSet = { steps: 1, toolCalls: 1, tokens: 1, costUsd: 1, wallMs: 1, depth: 1 };
  expect(effectiveLimits({ ...set, run: set }, {})).toEqual({ turn: set, run: set });
});

test('a limit is shown as people write it', () => {
  const shown = LIMIT_NAMES.map((name) => `${limitOption(name)} ${limitAmount(name, 600_000)}`);
  expect(shown).toEqual([
    'steps 600000',
    'toolCalls 600000',
    'tokens 600000',
    'costUsd 600000',
    'wall 10 min',
    'depth 600000',
  ]);
});

test('a limit of time above the one of the agent is shown as a duration', () => {
  expect(effectiveLimits({ wallMs: 60_000 }, { wallMs: 120_000 })).toBe(
    "limits.wallMs: expected at most the agent's 1 min, got 2 min; a run may only lower it",
  );
});

describe('a sum of money', () => {
  const paid = (costUsd: number, rest: Parameters<typeof config>[0] = {}) =>
    having(
      { costUsd: 0.25, run: { costUsd: 5 } },
      {
        spent: { usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd } },
        rest,
      },
    );

  test('is shown and recorded without the error of binary fractions', () => {
    expect(limitAmount('costUsd', 0.3 + 0.6)).toBe('0.9');
    expect(limitAmount('costUsd', 0.000_001_234_5)).toBe('0.0000012345');
    expect(raisedLimits(paid(0.6), { costUsd: 0.3 }, 0)).toEqual({ costUsd: 0.9, run: {} });
    expect(raisedLimits(paid(0.3), { costUsd: 0.3 }, 0)).toEqual({ costUsd: 0.6, run: {} });
    expect(raisedLimits(paid(0.2), { costUsd: 0.3 }, 0)).toEqual({ costUsd: 0.55, run: {} });
    expect(sumOf({ costUsd: 0.2 }, { costUsd: 0.1 })).toEqual({ costUsd: 0.3 });
  });

  test('keeps it where an older history has recorded it', () => {
    const old = paid(0.6);
    const { revised: _, ...before } = old.config;
    const limits = raisedLimits({ ...old, config: before }, { costUsd: 0.3 }, 0);
    expect(limits.costUsd).toBe(0.6 + 0.3);
    expect(limits.costUsd).not.toBe(0.9);
  });
});
