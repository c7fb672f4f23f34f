import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { AskReceipt } from '../core/inbox.js';
import type { UpdateTarget } from './execute-update.js';
import { findTaskQueue, checkForWorker } from './find-worker.js';

/** A message that the run has received. */
export interface DeliveredMessage extends AskReceipt {
  readonly delivered: true;
  /** The id of the message. Repeating the message with the same id has no further effect. */
  readonly messageId: string;
}

/**
 * A message that the server has recorded because there was no worker. It survives a crash of the
 * server, and the next worker delivers it. If the run then refuses it, the run's status shows that.
 */
export interface RecordedMessage {
  readonly delivered: false;
  readonly messageId: string;
}

/**
 * A message that was sent. `delivered` is whether the run already has it. `duplicate` is set by the
 * run; a repeat within the same segment gets the first answer from the server, without `duplicate`.
 */
export type SentMessage = DeliveredMessage | RecordedMessage;

/** When to check for a worker first; with one, an answer takes milliseconds. */
const FIRST_CHECK_MS = 1_000;
const CHECK_EVERY_MS = 3_000;

/**
 * Delivers a message to a run. If there is no answer and no worker polls the run's task queue, the
 * message is recorded as a signal under the same id: the server loses a pending update when it
 * crashes, but not a signal. Resolves with whichever comes first; the run accepts the message only
 * once.
 */
export async function deliverOrRecord(
  client: Client,
  target: UpdateTarget & { readonly messageId: string },
  how: {
    readonly deliver: (signal: AbortSignal) => Promise<DeliveredMessage>;
    readonly record: () => Promise<unknown>;
  },
): Promise<SentMessage> {
  const over = new AbortController();
  const delivery = how.deliver(over.signal);
  try {
    return await Promise.race([
      delivery,
      recordIfNoWorker(client, target, { ...how, signal: over.signal }),
    ]);
  } finally {
    over.abort();
    delivery.catch(() => undefined);
  }
}

/** Resolves only when the message is recorded; the update reports any failure. */
async function recordIfNoWorker(
  client: Client,
  target: UpdateTarget & { readonly messageId: string },
  { record, signal }: { readonly record: () => Promise<unknown>; readonly signal: AbortSignal },
): Promise<RecordedMessage> {
  for (let waitMs = FIRST_CHECK_MS; ; waitMs = CHECK_EVERY_MS) {
    if (!(await wait(waitMs, signal))) return await new Promise<never>(() => undefined);
    const queue = await findTaskQueue(client, target);
    if (queue === null || (await checkForWorker(client, queue)) !== 'missing') continue;
    const isRecorded = await record().then(
      () => true,
      () => false,
    );
    if (isRecorded) return { delivered: false, messageId: target.messageId };
  }
}

/** Resolves with false if the signal aborts first. */
async function wait(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
