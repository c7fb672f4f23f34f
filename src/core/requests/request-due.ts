import { findTool } from '../calls/batch.js';
import { safetyWords } from '../calls/safety.js';
import { currentNode } from '../graph/node-tool.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { findWork } from '../work/work.js';
import { isUnjudged, needsConsent } from './consent.js';
import type { NewRequest } from './request.js';

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
