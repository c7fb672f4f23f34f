import type { LimitName, LimitSet, Limits, ModelPrice } from './definition/definition.js';
import type { StopReason, Usage } from './outcome.js';
import { type EffectiveLimits, type RunState, type Spent, inTurn } from './state.js';

/** What holds where an agent says nothing. */
export const DEFAULT_LIMITS = { steps: 50, toolCalls: 200 } as const;

/** A model cannot say anything useful in fewer tokens than this; less room counts as none. */
const LEAST_OUTPUT_TOKENS = 32;

/** Identical reads with identical results in a row that end a turn. */
export const SAME_READS = 3;

/** Steps in a row in which every call failed that end a turn. */
export const FAILED_STEPS = 10;

export const LIMIT_NAMES: readonly LimitName[] = [
  'steps',
  'toolCalls',
  'tokens',
  'costUsd',
  'wallMs',
  'depth',
];

/**
 * The limits in force. Input may lower what the agent set and may replace a default.
 * @returns the problem as text when the input asks for more than the agent allows
 */
export function effectiveLimits(agent: Limits, input: Limits): EffectiveLimits | string {
  const turn = merge({ agent, input, path: 'limits' });
  if (typeof turn === 'string') return turn;
  const run = merge({ agent: agent.run ?? {}, input: input.run ?? {}, path: 'limits.run' });
  if (typeof run === 'string') return run;
  return { turn: { ...DEFAULT_LIMITS, ...turn }, run };
}

/** A caller's budget binds the whole run; it lowers and never raises. */
export function withinBudget(limits: EffectiveLimits, budget: LimitSet): EffectiveLimits {
  const run: Partial<Record<LimitName, number | null>> = { ...limits.run };
  for (const name of LIMIT_NAMES) {
    const most = budget[name];
    if (isSet(most)) run[name] = Math.min(most, run[name] ?? Infinity);
  }
  return { ...limits, run };
}

function merge(sets: { agent: LimitSet; input: LimitSet; path: string }): LimitSet | string {
  const merged: Partial<Record<LimitName, number | null>> = {};
  for (const name of LIMIT_NAMES) {
    const own = sets.agent[name];
    const asked = sets.input[name];
    if (own !== undefined && own !== null && asked !== undefined && (asked ?? Infinity) > own) {
      return (
        `${sets.path}.${name}: ${asked ?? 'null (none)'} is more than the agent's ${own}; ` +
        `a run may only lower it: give ${own} or less, or leave it out`
      );
    }
    const value = asked === undefined ? own : asked;
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}

/** The limit that stands in the way of another deciding call, if any. */
export function limitReached(state: RunState): StopReason | null {
  const { turn, total, config } = state;
  if (turn.deadlineReached) return 'wallMs';
  if (turn.callsRefused !== null) return turn.callsRefused;
  if (turn.clippedBy !== null) return turn.clippedBy;
  if ((turn.sameRead?.count ?? 0) >= SAME_READS) return 'no_progress';
  if (turn.failedSteps >= FAILED_STEPS) return 'no_progress';
  // A repair is no step: it has a budget of its own.
  if (!turn.branch && isUsedUp(turn.spent.steps, config.limits.turn.steps)) return 'steps';
  if (!turn.branch && isUsedUp(total.steps, config.limits.run.steps)) return 'steps';
  return reserve(state).refusedBy;
}

/** How many more calls the turn and the run permit. */
export function callsLeft(state: RunState): number {
  const { turn, run } = state.config.limits;
  return Math.min(
    (turn.toolCalls ?? Infinity) - state.turn.spent.toolCalls,
    (run.toolCalls ?? Infinity) - state.total.toolCalls,
  );
}

export interface Reservation {
  /** Output tokens that the budget still pays for; null when no budget binds. */
  readonly maxOutputTokens: number | null;
  /** The budget that caps the output below the settings. */
  readonly clippedBy: LimitName | null;
  /** The budget that does not pay for another call at all. */
  readonly refusedBy: LimitName | null;
}

/**
 * Tokens and money are reserved before a call: the estimated input and the greatest output.
 * `extraTokens` are of a message that will be added before it.
 */
export function reserve(state: RunState, extraTokens = 0): Reservation {
  const rooms = outputRooms(state, extraTokens);
  const least = rooms.reduce<Room | null>(
    (best, room) => (best === null || room.tokens < best.tokens ? room : best),
    null,
  );
  if (least === null) return { maxOutputTokens: null, clippedBy: null, refusedBy: null };
  if (least.tokens < LEAST_OUTPUT_TOKENS) {
    return { maxOutputTokens: null, clippedBy: null, refusedBy: least.limit };
  }
  const wanted = state.config.definition.settings.maxOutputTokens ?? Infinity;
  if (wanted <= least.tokens) return { maxOutputTokens: null, clippedBy: null, refusedBy: null };
  return { maxOutputTokens: least.tokens, clippedBy: least.limit, refusedBy: null };
}

interface Room {
  readonly limit: LimitName;
  readonly tokens: number;
}

function outputRooms(state: RunState, extraTokens: number): readonly Room[] {
  const scopes: readonly (readonly [LimitSet, Spent])[] = [
    [state.config.limits.turn, state.turn.spent],
    [state.config.limits.run, state.total],
  ];
  const budgeted = scopes.some(([limits]) => isSet(limits.tokens) || isSet(limits.costUsd));
  if (!budgeted) return [];
  const input = state.transcript.tokens + extraTokens;
  return scopes.flatMap(([limits, spent]) => [
    ...tokenRoom(limits, { spent, input }),
    ...moneyRoom(limits, { spent, input, price: state.config.price }),
  ]);
}

function tokenRoom(limits: LimitSet, use: { spent: Spent; input: number }): readonly Room[] {
  if (!isSet(limits.tokens)) return [];
  const { inputTokens, outputTokens } = use.spent.usage;
  return [
    { limit: 'tokens', tokens: Math.floor(limits.tokens - inputTokens - outputTokens - use.input) },
  ];
}

function moneyRoom(
  limits: LimitSet,
  use: { spent: Spent; input: number; price: ModelPrice | null },
): readonly Room[] {
  if (!isSet(limits.costUsd)) return [];
  // Without a price nobody can promise to keep to the budget, so nothing is spent on it.
  if (use.price === null) return [{ limit: 'costUsd', tokens: 0 }];
  const left =
    limits.costUsd - (use.spent.usage.costUsd ?? 0) - (use.input * use.price.input) / 1e6;
  if (use.price.output === 0) return left < 0 ? [{ limit: 'costUsd', tokens: 0 }] : [];
  return [{ limit: 'costUsd', tokens: Math.floor((left * 1e6) / use.price.output) }];
}

/** What a call of this size costs; null where the price is unknown. */
export function costOf(usage: Omit<Usage, 'costUsd'>, price: ModelPrice | null): number | null {
  if (price === null) return null;
  const fresh = usage.inputTokens - usage.cachedTokens;
  return (
    (fresh * price.input +
      usage.cachedTokens * price.cachedInput +
      usage.outputTokens * price.output) /
    1e6
  );
}

function isSet(limit: number | null | undefined): limit is number {
  return limit !== undefined && limit !== null;
}

function isUsedUp(spent: number, limit: number | null | undefined): boolean {
  return isSet(limit) && spent >= limit;
}

export interface Deadline {
  /** Unix time in ms. */
  readonly at: number;
  readonly of: 'turn' | 'run';
}

/** The nearest moment at which a wall time is over; null where none is set. */
export function nextDeadline(state: RunState): Deadline | null {
  const { turn, run } = state.config.limits;
  const turnAt = inTurn(state) ? state.turn.startedAt + (turn.wallMs ?? Infinity) : Infinity;
  const told = state.ending === 'wallMs';
  const runAt = told ? Infinity : state.startedAt + (run.wallMs ?? Infinity);
  if (Math.min(turnAt, runAt) === Infinity) return null;
  // A turn that has been told once is not told again: what follows is its closing call.
  if (state.turn.deadlineReached && turnAt <= runAt)
    return runAt === Infinity ? null : { at: runAt, of: 'run' };
  return runAt <= turnAt ? { at: runAt, of: 'run' } : { at: turnAt, of: 'turn' };
}
