import type { ApplicationFailure } from '@temporalio/common';
import { ArchiveError } from '../storage/archive.js';
import { StoreFault } from '../storage/worker-store.js';
import type { BlockedReason } from '../core/blocked.js';
import type { CheckBlobInput } from '../core/contract.js';
import type { Json } from '../core/json.js';
import type { ReplyUsage } from '../core/reply.js';
import type { AttemptReport } from '../core/report.js';
import { redactMessage } from '../secrets/redact.js';
import { wellFormed } from '../tools/utf8.js';
import type { ActivityDependencies } from './dependencies.js';
import { blockedFailure } from './failures.js';

/** The interval at which a run that is blocked by its storage probes it: a probe is only a read. */
const PROBE_MS = 5_000;
/** Maximum causes that are searched, because adapters wrap the store's errors. */
const MAX_CAUSES = 5;
const MESSAGE_CHARACTERS = 1_000;

/** Why the storage prevents an activity from completing. */
export interface StorageFault {
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
