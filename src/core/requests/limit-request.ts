import {
  LIMIT_NAMES,
  type LimitName,
  type LimitSet,
  type Limits,
} from '../definition/definition.js';
import type { JsonObject } from '../json.js';
import { limitReached } from '../limits.js';
import type { StopReason } from '../outcome.js';
import type { RunState } from '../state.js';
import type { Spent } from '../turn.js';
import type { LimitReached, NewRequest } from './request.js';

/**
 * Returns the request to raise a limit; null if the turn ends instead. `at`: Unix time in ms. A
 * person cannot raise the stops for no progress or denied calls.
 */
export function limitRequest(state: RunState, reason: StopReason, at: number): NewRequest | null {
  if (state.config.definition.onLimit !== 'ask' || state.unattended === 'deny') return null;
  if (state.turn.limitKept || reason === 'no_progress' || reason === 'denied') return null;
  const limit = reached(state, reason, at);
  return { kind: 'limit', why: `the limit "${reason}" was reached`, raisedAt: at, limit };
}

function reached(state: RunState, name: LimitName, at: number): LimitReached {
  const { turn, run } = state.config.limits;
  const used = usedIn(state, 'turn', name, at);
  return { name, used, limit: turn[name] ?? run[name] ?? null };
}

/** Returns whether a run that has reached this limit may go on under its present limits. */
export function isAllowed(state: RunState, name: LimitName, at: number): boolean {
  const { turn, run } = state.config.limits;
  const fits = (scope: 'turn' | 'run', limit: number | null | undefined): boolean =>
    usedIn(state, scope, name, at) < (limit ?? Infinity);
  const free = { ...state, turn: { ...state.turn, limit: null } };
  return fits('turn', turn[name]) && fits('run', run[name]) && limitReached(free) === null;
}

/** Returns the amount of a limit that the turn, or the whole run, has used. */
function usedIn(state: RunState, scope: 'turn' | 'run', name: LimitName, at: number): number {
  const isTurn = scope === 'turn';
  const spent: Spent = isTurn ? state.turn.spent : state.total;
  switch (name) {
    case 'steps':
      return spent.steps;
    case 'toolCalls':
      return spent.toolCalls;
    case 'tokens':
      return spent.usage.inputTokens + spent.usage.outputTokens;
    case 'costUsd':
      return spent.usage.costUsd ?? 0;
    case 'wallMs':
      return Math.max(0, at - (isTurn ? state.turn.startedAt : state.startedAt));
    case 'depth':
      return state.config.depth ?? 0;
  }
}

/**
 * Returns the limits after a person raised some by these amounts, on top of the used or the allowed
 * amount, whichever is higher. Limits of the whole run are raised where they would stop the turn.
 */
export function raisedLimits(state: RunState, by: JsonObject, at: number): Limits {
  const { turn, run } = state.config.limits;
  return { ...raised(state, 'turn', turn, by, at), run: raised(state, 'run', run, by, at) };
}

function raised(
  state: RunState,
  scope: 'turn' | 'run',
  limits: LimitSet,
  by: JsonObject,
  at: number,
): LimitSet {
  const entries = LIMIT_NAMES.flatMap((name) => {
    const limit = limits[name];
    const more = by[name];
    if (limit === undefined || limit === null || typeof more !== 'number') return [];
    const used = usedIn(state, scope, name, at);
    // A sufficient limit of the run stays unchanged.
    if (scope === 'run' && used + more <= limit) return [];
    return [[name, Math.max(limit, used) + more] as const];
  });
  return Object.fromEntries(entries);
}
