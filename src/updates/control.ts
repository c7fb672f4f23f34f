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

/** How long a decision is tried, and who makes it. */
export interface DecisionOptions extends UpdateOptions, ActorClaim {}

/**
 * Gives a run a message; executeUpdate when the run has it, not when it has an answer. The message is
 * neither lost nor doubled where the run goes on in a new segment, or a worker freezes, meanwhile: its
 * id, made up where there is none, is the same in every try. Where no worker is there, the message is
 * recorded for one that comes. Rejects with a `RefusedError` or a `NotDeliveredError`.
 */
export async function askRun(
  client: Client,
  id: string,
  ask: Ask,
  patience: UpdateOptions = {},
): Promise<SentMessage> {
  const named = withId(ask);
  const told = { id, messageId: named.id };
  return await deliverOrRecord(client, told, {
    take: (over) => askWorker(client, id, named, { ...patience, signal: either(over, patience) }),
    record: () => recordMessage(client, id, named),
  });
}

/** The same, where only a worker's answer counts. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function askWorker(
  client: Client,
  id: string,
  ask: Ask,
  patience: UpdateOptions = {},
): Promise<DeliveredMessage> {
  const named = withId(ask);
  const { id: messageId } = named;
  const options = { args: [named] as [Ask], updateId: messageId };
  const handle = client.workflow.getHandle(id);
  const update = () => handle.executeUpdate(askUpdate, options);
  const receipt = await executeUpdate(client, { id, messageId }, update, patience);
  return { ...receipt, delivered: true, messageId };
}

/** Has the server record a message for a worker that comes. Rejects where there is no such run that lives. */
export async function recordMessage(
  client: Client,
  id: string,
  ask: Ask & { readonly id: string },
): Promise<void> {
  await client.workflow.getHandle(id).signal(messageSignal, ask);
}

/** A message that any run could take, under an id. Throws an `InputError` for another. */
export function withId(ask: Ask): Ask & { readonly id: string } {
  const problem = askProblem(ask);
  if (problem !== null) throw new InputError(problem);
  return { ...ask, id: ask.id ?? randomUUID() };
}

/** Aborts with the first of the two. */
export function either(over: AbortSignal, { signal }: UpdateOptions): AbortSignal {
  return signal === undefined ? over : AbortSignal.any([over, signal]);
}

/** Lets what is in flight finish and starts nothing more. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function pauseRun(
  client: Client,
  id: string,
  { by, ...patience }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const options = once(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(pauseUpdate, options), patience);
}

/**
 * Ends the turn under way, only this one where it is named: a late word does not hit the next.
 * @returns its number. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`.
 */
export async function cancelTurn(
  client: Client,
  id: string,
  { turn, by, ...patience }: DecisionOptions & { readonly turn?: number } = {},
): Promise<number> {
  const handle = client.workflow.getHandle(id);
  const options = once({ ...(turn !== undefined && { turn }), ...claim(by) });
  const update = () => handle.executeUpdate(cancelTurnUpdate, options);
  return (await executeUpdate(client, { id }, update, patience)).cancelled;
}

/** Takes no more messages: the run ends with those that it has. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function closeRun(
  client: Client,
  id: string,
  { by, ...patience }: DecisionOptions = {},
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  const options = once(claim(by));
  await executeUpdate(client, { id }, () => handle.executeUpdate(closeUpdate, options), patience);
}

/** Replaces the named limits. @returns all as they are now. Needs a worker. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function setLimits(
  client: Client,
  id: string,
  limits: Limits,
  { by, ...patience }: DecisionOptions = {},
): Promise<EffectiveLimits> {
  const handle = client.workflow.getHandle(id);
  const options = once({ ...limits, ...claim(by) });
  const update = () => handle.executeUpdate(setLimitsUpdate, options);
  return await executeUpdate(client, { id }, update, patience);
}

/** Throws an `InputError` for a claim that no run would take. */
export function claim(by: string | undefined): ActorClaim {
  const problem = checkBy(by);
  if (problem !== null) throw new InputError(problem);
  return by === undefined ? {} : { by };
}

/** One update, however often it is tried: the run carries out each id once. */
export function once<T>(argument: T): { readonly args: [T]; readonly updateId: string } {
  return { args: [argument], updateId: randomUUID() };
}
