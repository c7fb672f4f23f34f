import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import { isTooDeep, tooDeep, wellFormedJson } from '../core/foreign-json.js';
import { decisionShape } from '../core/guards/requests.js';
import type { Decision, DecisionReceipt } from '../core/requests/decision.js';
import { MAX_DECISIONS } from '../core/requests/refusal.js';
import { show } from '../core/text/format-value.js';
import {
  resolveUpdate,
  revokeUpdate,
  undoUpdate,
} from '../workflows/messages/request-definitions.js';
import { claim, sendDecision, type DecisionOptions } from './control.js';
import { executeUpdate } from './execute-update.js';

/** Options for sending decisions about requests. */
export interface ResolveOptions extends DecisionOptions {
  /**
   * The id of this answer; default: a random id. The same decisions with the same id get the answer
   * that the run has recorded, so a program that crashed can send them again.
   */
  readonly id?: string;
}

const MAX_ID_CHARACTERS = 200;

/**
 * Decides about requests of a run: all of the decisions are accepted, or none is. Returns the
 * result of each. `by` of the options applies to decisions without their own. Needs a worker.
 * Rejects with an `InputError`, with a `RefusedError` that has the `reason`, or with a
 * `NotDeliveredError`.
 */
export async function resolveRequests(
  client: Client,
  run: string,
  given: Decision | readonly Decision[],
  { by, id: updateId = randomUUID(), ...options }: ResolveOptions = {},
): Promise<readonly DecisionReceipt[]> {
  checkUpdateId(updateId);
  const list = isList(given) ? given : [given];
  const decisions = list.map((decision, index) => {
    const place = isList(given) ? `decisions[${index}]` : 'decision';
    const problem = isTooDeep(decision) ? tooDeep(place) : decisionShape(decision, place);
    if (problem !== null) throw new InputError(problem);
    return wellFormedJson({ ...claim(by), ...decision });
  });
  const [first] = decisions;
  if (first === undefined || decisions.length > MAX_DECISIONS) {
    throw new InputError(
      `decisions: expected 1 to ${MAX_DECISIONS} decisions, got ${decisions.length}`,
    );
  }
  const args: [Decision | readonly Decision[]] = [isList(given) ? decisions : first];
  const handle = client.workflow.getHandle(run);
  const send = () => handle.executeUpdate(resolveUpdate, { args, updateId });
  return (await executeUpdate(client, { id: run }, send, options)).resolved;
}

/**
 * Revokes a grant: later calls ask again. Returns the grant's id. Needs a worker. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function revokeGrant(
  client: Client,
  run: string,
  grant: string,
  options?: DecisionOptions,
): Promise<string> {
  const decision = { update: revokeUpdate, fields: { grant } };
  return (await sendDecision(client, run, decision, options)).revoked;
}

/**
 * Undoes a call, or the last call that can be undone, and returns its id. Resolves when the run has
 * started to undo it, not when the call is undone. Needs a worker. Rejects with a `RefusedError` or
 * a `NotDeliveredError`.
 */
export async function requestUndo(
  client: Client,
  run: string,
  { call, ...options }: DecisionOptions & { readonly call?: string } = {},
): Promise<string> {
  const fields = call === undefined ? {} : { call };
  return (await sendDecision(client, run, { update: undoUpdate, fields }, options)).undoing;
}

/** Narrows a read-only list, which `Array.isArray` does not. */
function isList(given: Decision | readonly Decision[]): given is readonly Decision[] {
  return Array.isArray(given);
}

function checkUpdateId(id: unknown): void {
  if (typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARACTERS) return;
  throw new InputError(
    `id: expected a string of 1 to ${MAX_ID_CHARACTERS} characters, got ${show(id)}; omit it for a random one`,
  );
}
