import type { Context } from '@temporalio/activity';
import { wellFormed } from '../core/text/text.js';
import type { ApplicationFailure } from '@temporalio/common';
import { ArchiveError, type BlobStore, StoreFault } from '../storage/blob-store.js';
import {
  type BlockedReason,
  type ReplyUsage,
  STORAGE_LOST,
  type AttemptReport,
} from '../core/transcript/outcome.js';
import type { CheckBlobInput } from '../core/run/contract.js';
import type { Json } from '../core/text/json.js';
import { redactMessage } from '../secrets/redact.js';
import type { ActivityDependencies } from './activity-context.js';
import { blockedFailure } from './attempt.js';

/** The interval at which a run that is blocked by its storage probes it: a probe is only a read. */
const PROBE_MS = 5_000;
/** Maximum causes that are searched, because adapters wrap the store's errors. */
const MAX_CAUSES = 5;
const MESSAGE_CHARACTERS = 1_000;
const REPORT_CHARACTERS = 300;

/** Why the storage prevents an activity from completing. */
interface StorageFault {
  /** For people: which data cannot be read or written, why, and the fix. */
  readonly message: string;
  /** SHA-256 of the blob that must be readable before the run can continue. */
  readonly blob?: string;
}

/** Returns the storage fault behind an error, or null if there is none. */
export function findStorageFault(thrown: unknown): StorageFault | null {
  const fault = causesOf(thrown).find(
    (error): error is StoreFault | ArchiveError =>
      error instanceof StoreFault || error instanceof ArchiveError,
  );
  if (fault === undefined) return null;
  const text = thrown instanceof Error ? thrown.message : fault.message;
  const message = wellFormed(redactMessage(text).slice(0, MESSAGE_CHARACTERS));
  const blob = fault instanceof StoreFault ? fault.sha256 : undefined;
  return { message, ...(blob !== undefined && { blob }) };
}

interface StorageFailureOptions {
  /** Why the run is already blocked, if the activity is a probe that may be retried. */
  readonly blocked?: BlockedReason | undefined;
  readonly reports?: readonly AttemptReport[];
  /** A model reply that has been paid for, for the call after the block. */
  readonly paid?: Json | undefined;
  /** The usage of a decision function's model calls. */
  readonly used?: ReplyUsage;
}

/** Creates the failure that blocks a run as `storage`. */
export function storageFailure(
  { message, blob }: StorageFault,
  { blocked, reports = [], paid, used }: StorageFailureOptions = {},
): ApplicationFailure {
  const problem = {
    reason: 'storage',
    message,
    ...(blob !== undefined && { blob }),
    ...(paid !== undefined && { paid }),
    ...(reports.length > 0 && { reports }),
    ...(used && { used }),
  } as const;
  return blockedFailure(problem, { blocked, probeDelayMs: PROBE_MS });
}

/** Runs the part of an activity that needs the store, and turns a storage fault into a block. */
export async function withStorageMapping<T>(
  { blocked }: { readonly blocked?: BlockedReason },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = findStorageFault(error);
    if (fault === null) throw error;
    throw storageFailure(fault, { blocked });
  }
}

/** Resolves when a blob can be read. Rejects while it cannot; Temporal then retries. */
export async function checkBlob(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  { sha256 }: CheckBlobInput,
): Promise<void> {
  await withStorageMapping({ blocked: 'storage' }, () => blobs.get({ sha256 }));
}

/** A store that notes the texts that it could not store. */
interface TrackedStore {
  readonly blobs: BlobStore;
  /** Returns the lost bytes and the reason, or null if every text was stored in the end. */
  readonly loss: () => { readonly bytes: number; readonly why: string } | null;
}

/** Wraps a store for one result, which records a note in place of a text that cannot be stored. */
export function trackStore(store: BlobStore): TrackedStore {
  const lost = new Map<string, string>();
  return {
    blobs: {
      get: (ref) => store.get(ref),
      async put(text) {
        try {
          const ref = await store.put(text);
          lost.delete(text);
          return ref;
        } catch (error) {
          lost.set(text, error instanceof Error ? error.message : String(error));
          throw error;
        }
      },
    },
    loss: () => {
      const [why] = lost.values();
      if (why === undefined) return null;
      const bytes = [...lost.keys()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      return { bytes, why };
    },
  };
}

/** Creates the failure that blocks a run until a result, which can be made again, can be stored. */
export function unstoredFailure(
  what: string,
  { loss }: Pick<TrackedStore, 'loss'>,
  options: StorageFailureOptions = {},
): ApplicationFailure | null {
  const found = loss();
  if (found === null) return null;
  const message = `${what} cannot be stored (${found.bytes} bytes): ${found.why}`;
  return storageFailure({ message: redactMessage(message).slice(0, MESSAGE_CHARACTERS) }, options);
}

/**
 * Reports and logs the part of a result that could not be stored although the work is done and must
 * not be repeated. Empty if everything was stored.
 */
export function reportLoss(
  { log, info }: Context,
  what: string,
  { loss }: Pick<TrackedStore, 'loss'>,
): readonly AttemptReport[] {
  const found = loss();
  if (found === null) return [];
  const whole = redactMessage(`${what}: ${found.bytes} bytes could not be stored: ${found.why}`);
  const message = wellFormed(whole.slice(0, REPORT_CHARACTERS));
  log.error('a result is lost in part, because the storage failed', { message: whole });
  const { attempt } = info;
  return [{ type: STORAGE_LOST, attempt, waitMs: 0, at: Date.now(), message }];
}

/** A text that shows whether the store can be written. */
const PROBE = 'perdure writes this text to see whether the storage can be written.';

/** Throws the failure that keeps a run blocked while its store cannot be written. */
export async function checkWritable(store: BlobStore, blocked: BlockedReason): Promise<void> {
  await withStorageMapping({ blocked }, () => store.put(PROBE));
}

function causesOf(thrown: unknown): readonly unknown[] {
  const causes: unknown[] = [];
  for (
    let error = thrown;
    error instanceof Error && causes.length < MAX_CAUSES;
    error = error.cause
  ) {
    causes.push(error);
  }
  return causes;
}
