import {
  type AgentDefinition,
  type Budget,
  type BudgetName,
  LIMITS,
  LIMIT_NAMES,
  type LimitName,
  type LimitSet,
  type Limits,
  type ModelPrice,
} from '../definition/definition.js';
import type { EffectiveLimits, RunConfig, RunState } from '../state/state.js';
import { currentDefinition } from '../state/turn-definition.js';
import { type Spent, inTurn, isRepairing } from '../state/turn.js';
import { type Json, canonicalJson, sha256Hex } from '../text/json.js';
import { formatDuration } from '../text/text.js';
import { type StopReason, type Usage } from '../transcript/outcome.js';

/** The limits of an agent that sets none. */
const DEFAULT_LIMITS = { steps: 50, toolCalls: 200 } as const;

/** The minimum useful number of output tokens. A budget that allows fewer allows no call. */
const MIN_OUTPUT_TOKENS = 32;

/** The number of consecutive identical reads with identical results after which a turn ends. */
const SAME_READS = 3;

/** The number of consecutive steps in which every call failed after which a turn ends. */
const FAILED_STEPS = 10;

/**
 * Returns the limits in force. The input may lower the agent's limits and replace default limits.
 * Returns the problem as text if the input asks for more than the agent allows.
 */
export function effectiveLimits(agent: Limits, input: Limits): EffectiveLimits | string {
  const turn = merge({ agent, input, path: 'limits' });
  if (typeof turn === 'string') return turn;
  const run = merge({ agent: agent.run ?? {}, input: input.run ?? {}, path: 'limits.run' });
  if (typeof run === 'string') return run;
  return { turn: { ...DEFAULT_LIMITS, ...turn }, run };
}

/**
 * Returns the limits within a caller's budget, which applies to the whole run and never raises a
 * limit.
 */
export function withinBudget(limits: EffectiveLimits, budget: LimitSet): EffectiveLimits {
  const run: Partial<Record<LimitName, number | null>> = { ...limits.run };
  for (const name of LIMIT_NAMES) {
    const max = budget[name];
    if (isSet(max)) run[name] = Math.min(max, run[name] ?? Infinity);
  }
  return { ...limits, run };
}

function merge(sets: { agent: LimitSet; input: LimitSet; path: string }): LimitSet | string {
  const merged: Partial<Record<LimitName, number | null>> = {};
  for (const name of LIMIT_NAMES) {
    const own = sets.agent[name];
    const requested = sets.input[name];
    if (
      own !== undefined &&
      own !== null &&
      requested !== undefined &&
      (requested ?? Infinity) > own
    ) {
      const shown = (limit: number): string =>
        LIMITS[name] === 'time' ? formatDuration(limit, { as: 'exact' }) : String(limit);
      const got = requested === null ? 'null (none)' : shown(requested);
      return `${sets.path}.${name}: expected at most the agent's ${shown(own)}, got ${got}; a run may only lower it`;
    }
    const value = requested === undefined ? own : requested;
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}

/** The scope of a limit, and the time in Unix ms. */
interface Scope {
  readonly state: RunState;
  readonly scope: 'turn' | 'run';
  readonly at: number;
}

/** Where the limits are enforced that do not stop the next step. */
interface Enforced {
  /** A call over the limit is not executed (`openBatch`). */
  readonly toolCalls: 'calls';
  /** A model call's input and output are reserved (`reserve`). */
  readonly tokens: 'requests';
  readonly costUsd: 'requests';
  /** A timer interrupts the work (`nextDeadline`). */
  readonly wallMs: 'time';
  /** A call of an agent over the limit is not executed (`openBatch`). */
  readonly depth: 'agents';
}

/** How one limit is counted and enforced. */
interface LimitRules<N extends LimitName> {
  /** What the limit stops. Any limit stops the next step, unless it is enforced elsewhere. */
  readonly stops: N extends keyof Enforced ? Enforced[N] : 'steps';
  /** The amount that the turn, or the whole run, has used. */
  readonly used: (scope: Scope) => number;
}

/** The rules of each limit. One that nothing enforces does not compile. */
const RULES: { readonly [N in LimitName]: LimitRules<N> } = {
  steps: { stops: 'steps', used: (scope) => spentIn(scope).steps },
  toolCalls: { stops: 'calls', used: (scope) => spentIn(scope).toolCalls },
  tokens: {
    stops: 'requests',
    used: (scope) => {
      const { inputTokens, outputTokens } = spentIn(scope).usage;
      return inputTokens + outputTokens;
    },
  },
  costUsd: { stops: 'requests', used: (scope) => spentIn(scope).usage.costUsd ?? 0 },
  wallMs: {
    stops: 'time',
    used: ({ state, scope, at }) =>
      Math.max(0, at - (scope === 'turn' ? state.turn.startedAt : state.startedAt)),
  },
  depth: { stops: 'agents', used: ({ state }) => state.config.depth ?? 0 },
};

/** The limits of which the next step is the first thing that they stop. */
const OF_STEPS = LIMIT_NAMES.filter((name) => RULES[name].stops === 'steps');

function spentIn({ state, scope }: Scope): Spent {
  return scope === 'turn' ? state.turn.spent : state.total;
}

/** Returns the amount of a limit that the turn, or the whole run, has used. */
export function usedOf(name: LimitName, scope: Scope): number {
  return RULES[name].used(scope);
}

/** Returns the limit that the turn or the run has used up; null if the next step may begin. */
function stepLimit(state: RunState): LimitName | null {
  const { limits } = state.config;
  const isOver = (name: LimitName, scope: 'turn' | 'run'): boolean =>
    isUsedUp(usedOf(name, { state, scope, at: state.startedAt }), limits[scope][name]);
  return OF_STEPS.find((name) => isOver(name, 'turn') || isOver(name, 'run')) ?? null;
}

/** Returns the limit that allows no further deciding call; null if there is none. */
export function limitReached(state: RunState): StopReason | null {
  const { turn } = state;
  if (turn.limit !== null) return turn.limit;
  if (turn.sameRead !== null && turn.sameRead.count >= SAME_READS) return 'no_progress';
  if (turn.failedSteps >= FAILED_STEPS) return 'no_progress';
  // A repair is not a step; a separate limit applies to its attempts.
  const used = isRepairing(state) ? null : stepLimit(state);
  return used ?? reserve(state).refusedBy;
}

/** Returns the number of further tool calls that the turn and the run allow. */
export function callsLeft(state: RunState): number {
  const { turn, run } = state.config.limits;
  return Math.min(
    (turn.toolCalls ?? Infinity) - state.turn.spent.toolCalls,
    (run.toolCalls ?? Infinity) - state.total.toolCalls,
  );
}

/** The budgets' allowance for the next model call. */
interface Reservation {
  /** Output tokens that the budget still allows; null if no budget limits the output. */
  readonly maxOutputTokens: number | null;
  /** The budget that caps the output below the settings; null if none does. */
  readonly clippedBy: BudgetName | null;
  /** The budget that does not allow another call; null if all do. */
  readonly refusedBy: BudgetName | null;
}

/**
 * Reserves tokens and money for a model call: its estimated input and its maximum output.
 * `extraTokens` are those of a message that is added before the call.
 */
export function reserve(state: RunState, extraTokens = 0): Reservation {
  const wanted = currentDefinition(state).settings.maxOutputTokens ?? Infinity;
  return reserveOf(outputAllowances(state, extraTokens), wanted);
}

/**
 * Reserves tokens and money for a model call of a decision function, from the run's remaining
 * budget for the decision.
 */
export function reserveWithin(left: Budget, use: Use & { readonly wanted: number }): Reservation {
  return reserveOf(allowancesIn(left, use), use.wanted);
}

/** Returns the remaining tokens and money of the turn and the run; null if nothing limits them. */
export function budgetLeft(state: RunState): Budget | null {
  const scopes = scopesOf(state);
  const tokens = scopes.flatMap(([limits, { usage }]) =>
    isSet(limits.tokens) ? [limits.tokens - (usage.inputTokens + usage.outputTokens)] : [],
  );
  const costUsd = scopes.flatMap(([limits, { usage }]) =>
    isSet(limits.costUsd) ? [limits.costUsd - (usage.costUsd ?? 0)] : [],
  );
  if (tokens.length + costUsd.length === 0) return null;
  return {
    ...(tokens.length > 0 && { tokens: Math.min(...tokens) }),
    ...(costUsd.length > 0 && { costUsd: Math.min(...costUsd) }),
  };
}

function reserveOf(allowances: readonly Allowance[], wanted: number): Reservation {
  const least = allowances.reduce<Allowance | null>(
    (best, one) => (best === null || one.tokens < best.tokens ? one : best),
    null,
  );
  if (least === null) return { maxOutputTokens: null, clippedBy: null, refusedBy: null };
  if (least.tokens < MIN_OUTPUT_TOKENS) {
    return { maxOutputTokens: null, clippedBy: null, refusedBy: least.limit };
  }
  if (wanted <= least.tokens) return { maxOutputTokens: null, clippedBy: null, refusedBy: null };
  return { maxOutputTokens: least.tokens, clippedBy: least.limit, refusedBy: null };
}

/** The maximum output tokens that one limit allows the next call. */
interface Allowance {
  readonly limit: BudgetName;
  readonly tokens: number;
}

function outputAllowances(state: RunState, extraTokens: number): readonly Allowance[] {
  // Whichever model answers, the reply must fit into the budget.
  const price = state.config.highestPrice ?? state.config.price;
  const input = state.transcript.tokens + extraTokens;
  return scopesOf(state).flatMap(([limits, { usage }]) =>
    allowancesIn(limits, { usage, input, price }),
  );
}

/**
 * Returns an estimate of the least that the next model call needs of a budget: its input, and the least useful
 * output. Null if no price is known.
 */
export function leastNeeded(state: RunState, name: BudgetName): number | null {
  const { tokens } = state.transcript;
  if (name === 'tokens') return tokens + MIN_OUTPUT_TOKENS;
  const price = state.config.highestPrice ?? state.config.price;
  if (price === null) return null;
  return (tokens * price.input + MIN_OUTPUT_TOKENS * price.output) / 1e6;
}

function scopesOf(state: RunState): readonly (readonly [LimitSet, Spent])[] {
  return [
    [state.config.limits.turn, state.turn.spent],
    [state.config.limits.run, state.total],
  ];
}

/**
 * The usage checked against a budget: the amount used and the estimated input of the next model
 * call.
 */
interface Use {
  readonly usage: Usage;
  readonly input: number;
  readonly price: ModelPrice | null;
}

function allowancesIn(limits: LimitSet, use: Use): readonly Allowance[] {
  return [...tokenAllowance(limits, use), ...costAllowance(limits, use)];
}

function tokenAllowance(limits: LimitSet, use: Use): readonly Allowance[] {
  if (!isSet(limits.tokens)) return [];
  const { inputTokens, outputTokens } = use.usage;
  return [
    { limit: 'tokens', tokens: Math.floor(limits.tokens - inputTokens - outputTokens - use.input) },
  ];
}

function costAllowance(limits: LimitSet, use: Use): readonly Allowance[] {
  if (!isSet(limits.costUsd)) return [];
  // Without a price, the budget cannot be enforced, so it allows no call.
  if (use.price === null) return [{ limit: 'costUsd', tokens: 0 }];
  const left = limits.costUsd - (use.usage.costUsd ?? 0) - (use.input * use.price.input) / 1e6;
  if (use.price.output === 0) return left < 0 ? [{ limit: 'costUsd', tokens: 0 }] : [];
  return [{ limit: 'costUsd', tokens: Math.floor((left * 1e6) / use.price.output) }];
}

function isSet(limit: number | null | undefined): limit is number {
  return limit !== undefined && limit !== null;
}

function isUsedUp(spent: number, limit: number | null | undefined): boolean {
  return isSet(limit) && spent >= limit;
}

/** A time at which a wall-time limit is reached. */
interface Deadline {
  /** Unix time in ms. */
  readonly at: number;
  readonly of: 'turn' | 'run';
}

/** Returns the nearest deadline of the turn or the run; null if there is none. */
export function nextDeadline(state: RunState): Deadline | null {
  const { turn, run } = state.config.limits;
  // The deadline of a turn counts once: its closing call follows.
  const hasTurn = inTurn(state) && state.turn.limit !== 'wallMs';
  const turnAt = hasTurn ? state.turn.startedAt + (turn.wallMs ?? Infinity) : Infinity;
  const hasPassed = state.ending === 'wallMs';
  const runAt = hasPassed ? Infinity : state.startedAt + (run.wallMs ?? Infinity);
  if (Math.min(turnAt, runAt) === Infinity) return null;
  return runAt <= turnAt ? { at: runAt, of: 'run' } : { at: turnAt, of: 'turn' };
}

/** Returns the content hash of a definition: 64 hex digits over everything but the hash itself. */
export function definitionHash(content: Omit<AgentDefinition, 'hash'>): string {
  // Converts through JSON, because the history records the definition as JSON.
  const json: Json = JSON.parse(JSON.stringify({ ...content, hash: undefined }));
  return sha256Hex(canonicalJson(json));
}

/**
 * Returns the configuration of a run until its agent is loaded; it suffices for messages and the
 * status.
 */
export function unloadedConfig(agent: string): RunConfig {
  return {
    definition: {
      name: agent,
      instructions: '',
      model: '',
      tools: [],
      toolChoice: 'auto',
      toolCalls: 'parallel',
      onLimit: 'answer',
      limits: {},
      settings: {},
      hash: '',
    },
    limits: { turn: DEFAULT_LIMITS, run: {} },
    price: null,
    searchAttributes: [],
  };
}

/** Whether the run has pinned its agent. */
export function isLoaded(state: RunState): boolean {
  return state.config.definition.hash !== '';
}

/**
 * Whether the hash of a carried definition matches its content. A run without a loaded agent must
 * have the definition from `unloadedConfig`.
 */
export function hasOwnHash(state: RunState): boolean {
  const { definition } = state.config;
  if (isLoaded(state)) return definitionHash(definition) === definition.hash;
  const empty = unloadedConfig(definition.name).definition;
  return definitionHash(definition) === definitionHash(empty);
}
