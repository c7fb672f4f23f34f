import { findTool, safetyWords } from '../calls/batch.js';
import {
  LIMIT_NAMES,
  type LimitName,
  type LimitSet,
  type Limits,
} from '../definition/definition.js';
import { limitReached, usedOf } from '../rules/limits.js';
import { isUnjudged, needsConsent } from '../state/consent.js';
import type { RunState } from '../state/state.js';
import { currentNode } from '../state/turn-definition.js';
import { findWork } from '../state/work.js';
import type { JsonObject } from '../text/json.js';
import type { ToolCall } from '../transcript/messages.js';
import type { StopReason } from '../transcript/outcome.js';
import type { LimitReached, NewRequest, RecordedLimit } from '../transcript/request.js';
import { limitWords, roundedAmount } from './limit-words.js';

/**
 * Returns the request to raise a limit; null if the turn ends instead. `at`: Unix time in ms. A
 * person cannot raise the stops for no progress or denied calls.
 */
export function limitRequest(state: RunState, reason: StopReason, at: number): NewRequest | null {
  if (state.config.definition.onLimit !== 'ask' || state.unattended === 'deny') return null;
  if (state.turn.limitKept || reason === 'no_progress' || reason === 'denied') return null;
  const limit = reached(state, reason, at);
  const { scope } = limitOf(state, { limit, raisedAt: at });
  const word = state.config.revised
    ? limitWords({ name: reason, ...(scope && { scope }) })
    : reason;
  return { kind: 'limit', why: `the limit "${word}" was reached`, raisedAt: at, limit };
}

/** Returns what the digest of a request covers, which may therefore not change. */
function reached(state: RunState, name: LimitName, at: number): RecordedLimit {
  const { turn, run } = state.config.limits;
  const used = usedOf(name, { state, scope: 'turn', at });
  return { name, used, limit: turn[name] ?? run[name] ?? null };
}

/** Returns the limit that a request is about: that of the whole run if less is left of it. */
export function limitOf(
  state: RunState,
  { limit, raisedAt: at }: { readonly limit: RecordedLimit; readonly raisedAt: number },
): LimitReached {
  const { name } = limit;
  const { turn, run } = state.config.limits;
  const used = usedOf(name, { state, scope: 'run', at });
  const most = run[name] ?? null;
  const left = (turn[name] ?? Infinity) - usedOf(name, { state, scope: 'turn', at });
  return most === null || left <= most - used ? limit : { name, used, limit: most, scope: 'run' };
}

/**
 * Returns whether a run that has reached this limit may go on under its present limits. If it has also
 * reached another one, a request about that follows.
 */
export function isAllowed(state: RunState, name: LimitName, at: number): boolean {
  const { turn, run } = state.config.limits;
  const fits = (scope: 'turn' | 'run', limit: number | null | undefined): boolean =>
    usedOf(name, { state, scope, at }) < (limit ?? Infinity);
  const next = limitReached({ ...state, turn: { ...state.turn, limit: null } });
  const isFree = next === null || (state.config.revised === true && next !== name);
  return fits('turn', turn[name]) && fits('run', run[name]) && isFree;
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
    const used = usedOf(name, { state, scope, at });
    // A sufficient limit of the run stays unchanged.
    if (scope === 'run' && used + more <= limit) return [];
    const sum = Math.max(limit, used) + more;
    return [[name, state.config.revised ? roundedAmount(name, sum) : sum] as const];
  });
  return Object.fromEntries(entries);
}

/**
 * Returns the request that a call raises before anything is executed; null if it may begin. `at`:
 * Unix time in ms.
 */
export function requestDue(state: RunState, call: ToolCall, at: number): NewRequest | null {
  const work = findWork(state, call.id);
  if (work === undefined) {
    const consent = consentDue(state, call, at);
    return consent ?? (isJudgedFirst(state, call) ? null : answerDue(state, call, at));
  }
  // An approved call, or one that the rules allow, may need an answer next. The caller executes its
  // tools without a worker, so one first applies the rules again, which may have changed meanwhile.
  const isClient = findTool(state, call.name)?.kind === 'client';
  const mayBegin = work.found || (work.approved && !isClient);
  return mayBegin && work.phase === 'waiting' ? answerDue(state, call, at) : null;
}

/** Whether a worker must apply the rules before the caller is asked to execute the call. */
function isJudgedFirst(state: RunState, call: ToolCall): boolean {
  return isUnjudged(call) && findTool(state, call.name)?.kind === 'client';
}

/** Returns the request for an answer that must come from outside the run. */
function answerDue(state: RunState, { name }: ToolCall, at: number): NewRequest | null {
  const tool = findTool(state, name);
  const base = { raisedAt: at, ...expiry(at, tool?.expiresMs) };
  if (tool?.kind === 'question') {
    const node = currentNode(state);
    if (node?.kind !== 'confirm') return { ...base, kind: 'question', why: 'the model asks' };
    const kind = node.plan === undefined ? 'question' : 'plan';
    return { ...base, kind, why: `the graph asks at "${node.name}"` };
  }
  if (tool?.kind !== 'client') return null;
  return { ...base, kind: 'client_tool', why: 'the caller executes this tool' };
}

function consentDue(state: RunState, call: ToolCall, at: number): NewRequest | null {
  const { verdict, safety } = call;
  if (verdict !== undefined && needsConsent(state, call)) {
    const whys = [verdict.why, ...(safety ? [safetyWords(call)] : [])];
    const { deciders, expires } = verdict;
    return {
      kind: 'approval',
      raisedAt: at,
      ...expiry(at, expires),
      why: whys.join('; '),
      ...(deciders && { deciders }),
    };
  }
  return safety === undefined
    ? null
    : { kind: 'safety_check', raisedAt: at, why: safetyWords(call) };
}

function expiry(at: number, expiresMs: number | undefined): { readonly expiresAt?: number } {
  return expiresMs === undefined ? {} : { expiresAt: at + expiresMs };
}

/** Whether a call waits for a decision and cannot proceed in the meantime. */
export function awaitsDecision(state: RunState, call: Pick<ToolCall, 'id'>): boolean {
  const work = findWork(state, call.id);
  return work?.phase === 'asking' && work.proposal === undefined;
}
