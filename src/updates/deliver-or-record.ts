import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { AskReceipt } from '../core/inbox.js';
import type { UpdateTarget } from './execute-update.js';
import { findTaskQueue, checkForWorker } from './find-worker.js';

/** A message that the run has taken. */
export interface DeliveredMessage extends AskReceipt {
  readonly delivered: true;
  /** Its id: sent again with the same one, it is the same message. */
  readonly messageId: string;
}

/**
 * A message that the server has recorded while no worker was there: it survives the server's death, and
 * a worker takes it when one comes. Should the run refuse it then, the run's status says so.
 */
export interface RecordedMessage {
  readonly delivered: false;
  readonly messageId: string;
}

/**
 * A message as it was sent; `delivered` says whether the run has it already. `duplicate` comes from the
 * run; a repeat that reaches the server within the same segment is given the first answer again, without it.
 */
export type SentMessage = DeliveredMessage | RecordedMessage;

/** An answer takes milliseconds where a worker is there. */
const FIRST_LOOK_MS = 1_000;
const LOOK_EVERY_MS = 3_000;

/**
 * Waits for the run to take a message. When nobody answers and no worker polls the run's task queue, the
 * message is recorded as a signal under the same id: an update that waits for a worker is lost when the
 * server dies, a signal is not. Whichever comes first counts; the run takes the message once.
 */
export async function deliverOrRecord(
  client: Client,
  told: UpdateTarget & { readonly messageId: string },
  how: {
    readonly take: (signal: AbortSignal) => Promise<DeliveredMessage>;
    readonly record: () => Promise<unknown>;
  },
): Promise<SentMessage> {
  const over = new AbortController();
  const taking = how.take(over.signal);
  try {
    return await Promise.race([taking, recorded(client, told, { ...how, signal: over.signal })]);
  } finally {
    over.abort();
    taking.catch(() => undefined);
  }
}

/** Resolves when the message is recorded, and never else: what speaks against it, the update hears too. */
async function recorded(
  client: Client,
  told: UpdateTarget & { readonly messageId: string },
  { record, signal }: { readonly record: () => Promise<unknown>; readonly signal: AbortSignal },
): Promise<RecordedMessage> {
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = LOOK_EVERY_MS) {
    if (!(await waited(waitMs, signal))) return await new Promise<never>(() => undefined);
    const queue = await findTaskQueue(client, told);
    if (queue === null || (await checkForWorker(client, queue)) !== 'missing') continue;
    const isRecorded = await record().then(
      () => true,
      () => false,
    );
    if (isRecorded) return { delivered: false, messageId: told.messageId };
  }
}

/** @returns false when the signal aborts first */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
