import { findTool } from '../calls/batch.js';
import { safetyWords } from '../calls/safety.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { findWork } from '../work/work.js';
import { grantFor } from './grants.js';
import type { NewRequest } from './request.js';

/**
 * Returns the request that a call raises before anything is executed; null if it may begin. `at`: Unix
 * time in ms.
 */
export function requestDue(state: RunState, call: ToolCall, at: number): NewRequest | null {
  if (findWork(state, call.id) !== undefined) return null;
  const tool = findTool(state, call.name);
  const base = { raisedAt: at, ...expiry(at, tool?.expiresMs) };
  if (tool?.kind === 'question') return { ...base, kind: 'question', why: 'the model asks' };
  if (tool?.kind === 'client') {
    return { ...base, kind: 'client_tool', why: 'whoever uses the run executes this tool' };
  }
  const { verdict, safety } = call;
  const asks = verdict?.then === 'ask' && grantFor(state, call) === undefined;
  if (asks) {
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

/** Whether a call waits for a decision, and nothing can be done about it meanwhile. */
export function awaitsDecision(state: RunState, call: Pick<ToolCall, 'id'>): boolean {
  const work = findWork(state, call.id);
  return work?.phase === 'asking' && work.proposal === undefined;
}
