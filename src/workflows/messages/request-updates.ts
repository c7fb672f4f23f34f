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
import { recordNow, type RunContext } from '../run-context.js';
import { runUndo } from '../undo-calls.js';
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
  setHandler(revokeUpdate, (input) => decide(run, 'revoke', input, { revoked: input.grant }), {
    validator: (input) => refuse(claimProblem(input) ?? revokeProblem(run.state, input)),
  });
  setHandler(undoUpdate, (input) => undo(run, input), {
    validator: (input) => refuse(claimProblem(input) ?? undoRefusal(run.state, input)),
  });
}

/** Handles decisions. An update that is sent again gets the same answer. */
function resolve(
  run: RunContext,
  input: Decision | readonly Decision[],
): { readonly resolved: readonly DecisionReceipt[] } {
  recordNow(run, { type: 'update', name: 'resolve', id: updateId(), input });
  const decisions: readonly Decision[] = isList(input) ? input : [input];
  const resolved = decisions.map(({ request, as }): DecisionReceipt => {
    const isChecked = run.state.work.some((work) => work.proposal?.decision.request === request);
    return { request, as, ...(isChecked && { checking: true }) };
  });
  return { resolved };
}

/** Begins to undo a call. */
function undo(
  run: RunContext,
  input: ActorClaim & { readonly call?: string },
): { readonly undoing: string } {
  const id = updateId();
  const before = decidedBefore(run.state.decisions, id)?.call;
  if (before !== undefined) return { undoing: before };
  const found = callToUndo(run.state, input.call, Date.now())?.call.id ?? '';
  recordNow(run, { type: 'update', name: 'undo', id, input });
  runUndo(run, found);
  return { undoing: found };
}

function undoRefusal(state: RunState, input: unknown): string | null {
  if (decidedBefore(state.decisions, updateId()) !== undefined) return null;
  return undoProblem(state, isObject(input) ? input['call'] : undefined, Date.now());
}

function revokeProblem({ grants = [], decisions }: RunState, input: unknown): string | null {
  if (decidedBefore(decisions, updateId()) !== undefined) return null;
  const id = isObject(input) ? input['grant'] : undefined;
  if (grants.some((grant) => grant.id === id)) return null;
  const known = grants.length === 0 ? 'it has none' : grants.map((grant) => grant.id).join(', ');
  return `grant: expected a grant of this run (${known}), got ${show(id)}`;
}

/** Returns the refusal of a list of decisions if one of their claims is malformed. */
function claimsProblem(input: unknown): Refused | null {
  for (const one of Array.isArray(input) ? (input as readonly unknown[]) : [input]) {
    const message = claimProblem(one);
    if (message !== null) return { reason: 'malformed', message };
  }
  return null;
}

function isList(input: Decision | readonly Decision[]): input is readonly Decision[] {
  return Array.isArray(input);
}
