import { setHandler } from '@temporalio/workflow';
import { decidedBefore } from '../../core/decisions.js';
import { isObject } from '../../core/json.js';
import type { Decision, DecisionReceipt } from '../../core/requests/decision.js';
import { decisionProblem, type Refused } from '../../core/requests/refusal.js';
import { callToUndo, undoProblem } from '../../core/requests/undo.js';
import type { RunState } from '../../core/state.js';
import { show } from '../../core/text/format-value.js';
import { type ActorClaim } from './definitions.js';
import { resolveUpdate, revokeUpdate, undoUpdate } from './request-definitions.js';
import { refuse } from './refuse.js';
import { record, type RunContext } from '../run-context.js';
import { undoCall } from '../undo-calls.js';
import { claimProblem, decide, updateId } from './update-tools.js';

/**
 * Handles decisions about requests, grants, and undoing. Updates refused by a validator are not
 * recorded.
 */
export function handleRequestUpdates(run: RunContext): void {
  setHandler(resolveUpdate, (decisions) => resolve(run, decisions), {
    validator: (decisions) => {
      const arrival = { update: updateId(), now: Date.now() };
      const refused = claimsProblem(decisions) ?? decisionProblem(run.state, decisions, arrival);
      if (refused !== null) refuse(refused.message, refused.reason);
    },
  });
  setHandler(revokeUpdate, (given) => decide(run, 'revoke', given, { revoked: given.grant }), {
    validator: (given) => refuse(claimProblem(given) ?? revokeProblem(run.state, given)),
  });
  setHandler(undoUpdate, (given) => undo(run, given), {
    validator: (given) => refuse(claimProblem(given) ?? undoRefusal(run.state, given)),
  });
}

/** Handles decisions. An update that is sent again gets the same answer. */
function resolve(
  run: RunContext,
  given: Decision | readonly Decision[],
): { readonly resolved: readonly DecisionReceipt[] } {
  record(run, { type: 'update', name: 'resolve', id: updateId(), input: given });
  const decisions: readonly Decision[] = isList(given) ? given : [given];
  const resolved = decisions.map(({ request, as }): DecisionReceipt => {
    const isChecked = run.state.work.some((work) => work.proposal?.decision.request === request);
    return { request, as, ...(isChecked && { checking: true }) };
  });
  return { resolved };
}

/** Begins to undo a call. */
function undo(
  run: RunContext,
  given: ActorClaim & { readonly call?: string },
): { readonly undoing: string } {
  const id = updateId();
  const before = decidedBefore(run.state.decisions, id)?.call;
  if (before !== undefined) return { undoing: before };
  const found = callToUndo(run.state, given.call, Date.now())?.call.id ?? '';
  record(run, { type: 'update', name: 'undo', id, input: given });
  undoCall(run, found);
  return { undoing: found };
}

function undoRefusal(state: RunState, given: unknown): string | null {
  if (decidedBefore(state.decisions, updateId()) !== undefined) return null;
  return undoProblem(state, isObject(given) ? given['call'] : undefined, Date.now());
}

function revokeProblem({ grants = [], decisions }: RunState, given: unknown): string | null {
  if (decidedBefore(decisions, updateId()) !== undefined) return null;
  const id = isObject(given) ? given['grant'] : undefined;
  if (grants.some((grant) => grant.id === id)) return null;
  const known = grants.length === 0 ? 'it has none' : grants.map((grant) => grant.id).join(', ');
  return `grant: expected a grant of this run (${known}), got ${show(id)}`;
}

/** Returns the refusal of a list of decisions if one of their claims is malformed. */
function claimsProblem(given: unknown): Refused | null {
  for (const one of Array.isArray(given) ? (given as readonly unknown[]) : [given]) {
    const message = claimProblem(one);
    if (message !== null) return { reason: 'malformed', message };
  }
  return null;
}

function isList(given: Decision | readonly Decision[]): given is readonly Decision[] {
  return Array.isArray(given);
}
