import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { askProblem } from '../core/ask.js';
import { InputError } from '../core/errors.js';
import { wellFormedJson } from '../core/foreign-json.js';
import type { Ask } from '../core/inbox.js';
import { askUpdate, messageSignal } from '../workflows/messages/definitions.js';
import { deliverOrRecord, type DeliveredMessage, type SentMessage } from './deliver-or-record.js';
import { executeUpdate, type UpdateOptions } from './execute-update.js';

/**
 * Sends a message to a run. Resolves when the run has received the message, not when it has
 * answered it. The message is neither lost nor duplicated if the run continues in a new segment or
 * a worker freezes: every try uses the same id, which is generated if the message has none. Without
 * a worker, the server records the message for a later one. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
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

/**
 * Does the same, but waits for a worker and never records. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
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

/**
 * Returns the message with an id, generated if it has none, and without half surrogate pairs. Throws an `InputError` if it is
 * invalid.
 */
export function withId(ask: Ask): Ask & { readonly id: string } {
  const problem = askProblem(ask);
  if (problem !== null) throw new InputError(problem);
  return wellFormedJson({ ...ask, id: ask.id ?? randomUUID() });
}

/** Returns a signal that aborts with the first of the two. */
export function anySignal(over: AbortSignal, { signal }: UpdateOptions): AbortSignal {
  return signal === undefined ? over : AbortSignal.any([over, signal]);
}
