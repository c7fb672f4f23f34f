import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { UpdateDefinition } from '@temporalio/common';
import { checkBy } from '../core/input/check-tags.js';
import type { Limits } from '../core/definition/definition.js';
import { InputError } from '../core/errors.js';
import type { EffectiveLimits } from '../core/state.js';
import {
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  resumeUpdate,
  setLimitsUpdate,
  type ActorClaim,
} from '../workflows/messages/definitions.js';
import { executeUpdate, type UpdateOptions } from './execute-update.js';

/** How long to try sending a decision, and who makes it. */
export interface DecisionOptions extends UpdateOptions, ActorClaim {}

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
 * Replaces the given limits and returns all limits after the change. Needs a worker. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function setLimits(
  client: Client,
  id: string,
  limits: Limits,
  options?: DecisionOptions,
): Promise<EffectiveLimits> {
  return await sendDecision(client, id, { update: setLimitsUpdate, fields: limits }, options);
}

/**
 * Returns who acts, as recorded with a message or decision. Throws an `InputError` if `by` is
 * invalid.
 */
export function claim(by: string | undefined): ActorClaim {
  const problem = checkBy(by);
  if (problem !== null) throw new InputError(problem);
  return by === undefined ? {} : { by };
}

/** Sends a decision. Every try uses the same update id, and the run executes an id only once. */
export async function sendDecision<Answer, Fields extends object>(
  client: Client,
  id: string,
  decision: {
    readonly update: UpdateDefinition<Answer, [Fields & ActorClaim]>;
    readonly fields: Fields;
  },
  { by, ...options }: DecisionOptions = {},
): Promise<Answer> {
  const handle = client.workflow.getHandle(id);
  const args: [Fields & ActorClaim] = [{ ...decision.fields, ...claim(by) }];
  const update = { args, updateId: randomUUID() };
  const send = (): Promise<Answer> => handle.executeUpdate(decision.update, update);
  return await executeUpdate(client, { id }, send, options);
}
