import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { UpdateDefinition } from '@temporalio/common';
import type { Limits } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import { checkLimits } from '../core/input/limits.js';
import { actorOf, actorProblem } from '../core/input/turn-context.js';
import type { EffectiveLimits } from '../core/state/state.js';
import { isTooDeep, tooDeep, wellFormedJson, isList } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { decisionShape } from '../core/transcript/message-shapes.js';
import { type Decision, type DecisionReceipt, MAX_DECISIONS } from '../core/transcript/request.js';
import {
  type ActorClaim,
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  resolveUpdate,
  resumeUpdate,
  revokeUpdate,
  setLimitsUpdate,
  undoUpdate,
} from '../workflows/messages/definitions.js';
import { hashedId } from '../temporal/stored-ids.js';
import { type UpdateOptions, executeUpdate } from './execute-update.js';

/** How long to try sending a decision, and who makes it. */
export interface DecisionOptions extends UpdateOptions, Pick<ActorClaim, 'by'> {}

/** The same for callers that may name an interface. */
type ClaimOptions = DecisionOptions & ActorClaim;

/**
 * Pauses a run: work in flight finishes, and nothing more is started. Needs a worker. Rejects with
 * a `RefusedError` or a `NotDeliveredError`.
 */
export async function pauseRun(
  client: Client,
  id: string,
  options?: DecisionOptions,
): Promise<void> {
  await sendDecision(client, id, { update: pauseUpdate, fields: {} }, options);
}

/**
 * Lets a blocked or paused run continue at once. Needs a worker. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
export async function resumeRun(
  client: Client,
  id: string,
  options?: DecisionOptions,
): Promise<void> {
  await sendDecision(client, id, { update: resumeUpdate, fields: {} }, options);
}

/**
 * Cancels the current turn and returns its number. With `turn`, cancels only that turn, so a late
 * request does not cancel the next one. Needs a worker. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
export async function cancelTurn(
  client: Client,
  id: string,
  { turn, ...options }: DecisionOptions & { readonly turn?: number } = {},
): Promise<number> {
  const fields = turn === undefined ? {} : { turn };
  const decision = { update: cancelTurnUpdate, fields };
  return (await sendDecision(client, id, decision, options)).cancelled;
}

/**
 * Closes an open run: it accepts no more messages and ends after those that it already has. Needs a
 * worker. Rejects with a `RefusedError` or a `NotDeliveredError`.
 */
export async function closeRun(
  client: Client,
  id: string,
  options?: DecisionOptions,
): Promise<void> {
  await sendDecision(client, id, { update: closeUpdate, fields: {} }, options);
}

/**
 * Replaces the given limits and returns all limits after the change. Needs a worker. Rejects with an
 * `InputError` for limits that are none, or with a `RefusedError` or a `NotDeliveredError`.
 */
export async function setLimits(
  client: Client,
  id: string,
  limits: Limits,
  options?: DecisionOptions,
): Promise<EffectiveLimits> {
  const problem = checkLimits(limits, 'limits');
  if (problem !== null) throw new InputError(problem);
  return await sendDecision(client, id, { update: setLimitsUpdate, fields: limits }, options);
}

/**
 * Returns who acts, as recorded with a message or decision. Throws an `InputError` if `by` is
 * invalid.
 */
export function claim(by: string | undefined, door?: string): ActorClaim {
  const problem = actorProblem({ by, door });
  if (problem !== null) throw new InputError(problem);
  return actorOf({ by, door });
}

/** Sends a decision. Every try uses the same update id, and the run executes an id only once. */
async function sendDecision<Answer, Fields extends object>(
  client: Client,
  id: string,
  decision: {
    readonly update: UpdateDefinition<Answer, [Fields & ActorClaim]>;
    readonly fields: Fields;
  },
  { by, door, ...options }: ClaimOptions = {},
): Promise<Answer> {
  const handle = client.workflow.getHandle(id);
  const args: [Fields & ActorClaim] = [{ ...decision.fields, ...claim(by, door) }];
  const update = { args, updateId: randomUUID() };
  const send = (): Promise<Answer> => handle.executeUpdate(decision.update, update);
  return await executeUpdate(client, { id }, send, options);
}

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
  const update = { args, updateId: hashedId(client, 'decision', updateId) };
  const send = () => handle.executeUpdate(resolveUpdate, update);
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

function checkUpdateId(id: unknown): void {
  if (typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARACTERS) return;
  throw new InputError(
    `id: expected a string of 1 to ${MAX_ID_CHARACTERS} characters, got ${show(id)}; omit it for a random one`,
  );
}
