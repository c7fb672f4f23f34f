import { ApplicationFailure } from '@temporalio/common';
import { ArchiveError } from '../storage/archive.js';
import { StoreFault } from '../storage/worker-store.js';
import type { ActivityProblem } from '../core/failure.js';
import type { Json } from '../core/json.js';
import type { AttemptReport } from '../core/report.js';
import { redactMessage } from '../secrets/redact.js';
import { wellFormed } from '../tools/utf8.js';
import type { CheckBlobInput } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';

/** The pace at which a run that is blocked by its storage asks again: it costs nothing but a read. */
const PROBE_MS = 5_000;
/** A cause behind a cause behind a cause; errors of adapters wrap those of the store. */
const DEPTH = 5;
const MESSAGE_CHARACTERS = 1_000;

/** Why the storage stands in the way of an activity. */
export interface StorageFault {
  /** For people: what cannot be read or written, why, and the fix. */
  readonly message: string;
  /** The blob that has to be readable before the run can go on. */
  readonly blob?: string;
}

/** The storage's part in what was thrown; null where the storage had none. */
export function storageFault(thrown: unknown): StorageFault | null {
  const fault = causes(thrown).find(
    (error): error is StoreFault | ArchiveError =>
      error instanceof StoreFault || error instanceof ArchiveError,
  );
  if (fault === undefined) return null;
  const text = thrown instanceof Error ? thrown.message : fault.message;
  const message = wellFormed(redactMessage(text).slice(0, MESSAGE_CHARACTERS));
  const blob = fault instanceof StoreFault ? fault.sha256 : undefined;
  return { message, ...(blob !== undefined && { blob }) };
}

interface BlockOptions {
  readonly isProbe?: boolean;
  readonly reports?: readonly AttemptReport[];
  /** A reply of the model that has been paid for, for the call after the block. */
  readonly paid?: Json | undefined;
}

/**
 * The failure that blocks a run as `storage`. In a probe of an activity that writes, it is retried by
 * Temporal without a further event, so that the run goes on by itself when the store is back.
 */
export function storageBlock(
  { message, blob }: StorageFault,
  { isProbe = false, reports = [], paid }: BlockOptions = {},
): ApplicationFailure {
  const problem: ActivityProblem = {
    type: 'blocked',
    reason: 'storage',
    message,
    ...(blob !== undefined && { blob }),
    ...(paid !== undefined && { paid }),
    ...(reports.length > 0 && { reports }),
  };
  return ApplicationFailure.create({
    type: 'storage',
    message,
    nonRetryable: !isProbe,
    details: [problem],
    ...(isProbe && { nextRetryDelay: PROBE_MS }),
  });
}

/** Runs the part of an activity that needs the store, and turns what the store does into a block. */
export async function needingStorage<T>(
  { blocked }: { readonly blocked?: unknown },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = storageFault(error);
    if (fault === null) throw error;
    throw storageBlock(fault, { isProbe: blocked === 'storage' });
  }
}

/** Returns when a blob can be read; fails, to be retried, while it cannot. */
export async function checkBlob(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  { sha256 }: CheckBlobInput,
): Promise<void> {
  await needingStorage({ blocked: 'storage' }, () => blobs.get({ sha256 }));
}

function causes(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let error = thrown; error instanceof Error && chain.length < DEPTH; error = error.cause) {
    chain.push(error);
  }
  return chain;
}
