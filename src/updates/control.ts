import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { askProblem } from '../core/ask.js';
import { checkBy } from '../core/decisions.js';
import type { Limits } from '../core/definition/definition.js';
import type { Ask } from '../core/inbox.js';
import type { EffectiveLimits } from '../core/state.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  messageSignal,
  pauseUpdate,
  setLimitsUpdate,
  type ActorClaim,
} from '../workflows/messages.js';
import { executeUpdate, type UpdateOptions } from './execute-update.js';
import { deliverOrRecord, type SentMessage, type DeliveredMessage } from './deliver-or-record.js';
import { InputError } from '../core/errors.js';

/** How long a decision is tried, and the person who makes it. */
export interface DecisionOptions extends UpdateOptions, ActorClaim {}

/**
 * Sends a message to a run. Resolves when the run has the message, not when it has answered it. The
 * message is neither lost nor duplicated if the run continues in a new segment or a worker freezes: every
 * try uses the same id, which is generated if the message has none. Without a worker, the server records
 * the message for a later one. Rejects with a `RefusedError` or a `NotDeliveredError`.
 */
export async function askRun(
  client: Client,
  id: string,
  ask: Ask,
  options: UpdateOptions = {},
): Promise<SentMessage> {
  const named = withId(ask);
  const target = { id, messageId: named.id };
  return await deliverOrRecord(client, target, {
    deliver: (over) =>
      askWorker(client, id, named, { ...options, signal: anySignal(over, options) }),
    record: () => recordMessage(client, id, named),
  });
}

/** Does the same, but waits for a worker and never records. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function askWorker(
  client: Client,
  id: string,
  ask: Ask,
  options: UpdateOptions = {},
): Promise<DeliveredMessage> {
  const named = withId(ask);
  const { id: messageId } = named;
  const update = { args: [named] as [Ask], updateId: messageId };
  const handle = client.workflow.getHandle(id);
  const send = () => handle.executeUpdate(askUpdate, update);
  const receipt = await executeUpdate(client, { id, messageId }, send, options);
  return { ...receipt, delivered: true, messageId };
}

/** Lets the server record a message for a later worker. Rejects if there is no such open run. */
export async function recordMessage(
  client: Client,
  id: string,
  ask: Ask & { readonly id: string },
): Promise<void> {
  await client.workflow.getHandle(id).signal(messageSignal, ask);
}

/** Returns the message with an id, generated if it has none. Throws an `InputError` if it is invalid. */
export function withId(ask: Ask): Ask & { readonly id: string } {
  const problem = askProblem(ask);
  if (problem !== null) throw new InputError(problem);
  return { ...ask, id: ask.id ?? randomUUID() };
}

/** Returns a signal that aborts with the first of the two. */
export function anySignal(over: AbortSignal, { signal }: UpdateOptions): AbortSignal {
  return signal === undefined ? over : AbortSignal.any([over, signal]);
}

/**
 * Pauses a run: work in flight finishes, and nothing more is started. Needs a worker. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function pauseRun(
  client: Client,
  id: string,
  { by, ...options }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(pauseUpdate, update), options);
}

/**
 * Cancels the current turn and returns its number. `turn`: cancels only this turn, so that a late request
 * does not cancel the next one. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`.
 */
export async function cancelTurn(
  client: Client,
  id: string,
  { turn, by, ...options }: DecisionOptions & { readonly turn?: number } = {},
): Promise<number> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate({ ...(turn !== undefined && { turn }), ...claim(by) });
  const send = () => handle.executeUpdate(cancelTurnUpdate, update);
  return (await executeUpdate(client, { id }, send, options)).cancelled;
}

/**
 * Closes an open run: it takes no more messages, and ends after those that it has. Needs a worker. Rejects
 * with a `RefusedError` or a `NotDeliveredError`.
 */
export async function closeRun(
  client: Client,
  id: string,
  { by, ...options }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(closeUpdate, update), options);
}

/**
 * Replaces the given limits and returns all limits as they are now. Needs a worker. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function setLimits(
  client: Client,
  id: string,
  limits: Limits,
  { by, ...options }: DecisionOptions = {},
): Promise<EffectiveLimits> {
  const handle = client.workflow.getHandle(id);
  const update = newUpdate({ ...limits, ...claim(by) });
  const send = () => handle.executeUpdate(setLimitsUpdate, update);
  return await executeUpdate(client, { id }, send, options);
}

/** Returns who acts, as recorded with a message or decision. Throws an `InputError` if `by` is invalid. */
export function claim(by: string | undefined): ActorClaim {
  const problem = checkBy(by);
  if (problem !== null) throw new InputError(problem);
  return by === undefined ? {} : { by };
}

/** Returns the options of a new update. The run executes each update id once, however often it is sent. */
export function newUpdate<T>(argument: T): { readonly args: [T]; readonly updateId: string } {
  return { args: [argument], updateId: randomUUID() };
}
