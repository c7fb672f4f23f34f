import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { BlobRef } from '../core/transcript/messages.js';
import { RESTORE } from './disk-fixes.js';
import { TimeoutError, within } from './within.js';
import {
  BlobError,
  type BlobErrorKind,
  type BlobErrorOptions,
  type BlobStore,
} from './blob-store.js';

/** A store that does not answer within this time counts as down, so the run is visibly blocked. */
const ANSWER_LIMIT_MS = 15_000;
/**
 * Pauses in milliseconds before a read is retried; after the last retry the run is visibly blocked.
 */
const RETRY_PAUSES_MS = [100, 400, 1_000];

/**
 * A failure of the worker's own store. Unlike a `BlobError` that a user's tool may throw, it means
 * that the run cannot continue until this blob can be read or the store can be written.
 */
export class StoreFault extends BlobError {
  /** The blob that could not be read; undefined if a write failed. */
  readonly sha256: string | undefined;

  constructor(
    message: string,
    { sha256, ...options }: BlobErrorOptions & { readonly sha256?: string },
  ) {
    super(message, options);
    this.sha256 = sha256;
  }
}

interface WorkerStoreOptions {
  /** Whether the driver itself checks the hash; default false. */
  readonly verified?: boolean;
  /** Milliseconds before each retry of a failed read. */
  readonly retryPausesMs?: readonly number[];
}

/**
 * Wraps a store of any driver for the activities. The result rejects only with a `StoreFault`,
 * answers within 15 s per attempt, retries a failed read for 1.5 s, and returns no text whose
 * SHA-256 differs from the reference.
 */
export function workerStore(
  store: BlobStore,
  { verified = false, retryPausesMs = RETRY_PAUSES_MS }: WorkerStoreOptions = {},
): BlobStore {
  return {
    async put(text) {
      try {
        return await within(ANSWER_LIMIT_MS, () => store.put(text));
      } catch (error) {
        throw toStoreFault(error, 'unwritable');
      }
    },
    async get({ sha256 }) {
      for (let attempt = 0; ; attempt += 1) {
        try {
          const text = await within(ANSWER_LIMIT_MS, () => store.get({ sha256 }));
          if (verified || hash(text) === sha256) return text;
          throw new BlobError(
            `blob ${sha256} is damaged: the blob store holds another text; ${RESTORE}`,
            { kind: 'damaged' },
          );
        } catch (error) {
          const fault = toStoreFault(error, 'unreadable', sha256);
          const waitMs = retryPausesMs[attempt];
          const isFinal = fault.kind === 'invalid' || error instanceof TimeoutError;
          if (waitMs === undefined || isFinal) throw fault;
          await pause(waitMs);
        }
      }
    },
  };
}

/**
 * Reads a blob for a purpose, such as `the run's context`, which the error then names. Rejects with
 * the error of the store.
 */
export async function readFor(
  what: string,
  ref: Pick<BlobRef, 'sha256'>,
  blobs: Pick<BlobStore, 'get'>,
): Promise<string> {
  try {
    return await blobs.get(ref);
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    const { kind, sha256, cause, message } = error;
    throw new StoreFault(`${what} cannot be read: ${message}`, {
      kind,
      cause,
      ...(sha256 !== undefined && { sha256 }),
    });
  }
}

/** Converts an error of a driver. One that is not a `BlobError` means that the store is down. */
function toStoreFault(error: unknown, otherwise: BlobErrorKind, sha256?: string): StoreFault {
  const kind = error instanceof BlobError ? error.kind : otherwise;
  const text = error instanceof Error ? error.message : String(error);
  const named = sha256 === undefined || text.includes(sha256) ? text : `blob ${sha256}: ${text}`;
  return new StoreFault(named, { kind, cause: error, ...(sha256 !== undefined && { sha256 }) });
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
