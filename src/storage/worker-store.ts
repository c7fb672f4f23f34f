import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { BlobRef } from '../core/transcript/messages.js';
import { RESTORE } from './disk-cures.js';
import { LateError, within } from './within.js';
import { BlobError, type BlobErrorKind, type BlobStore } from './blob-store.js';

/** A store that does not answer in this time counts as down: no run waits for it unseen. */
const ANSWER_LIMIT_MS = 15_000;
/** Pauses before a read is repeated, in milliseconds; after the last one the run is blocked, visibly. */
const AGAIN_MS = [100, 400, 1_000];

/**
 * The worker's own store failed. Unlike a `BlobError` that a user's tool may throw, it says that the
 * run cannot go on before this blob can be read, or the store written.
 */
export class StoreFault extends BlobError {
  /** The blob that could not be read; undefined where one could not be written. */
  readonly sha256: string | undefined;

  constructor(
    kind: BlobErrorKind,
    message: string,
    { sha256, ...options }: ErrorOptions & { readonly sha256?: string } = {},
  ) {
    super(kind, message, options);
    this.sha256 = sha256;
  }
}

interface WorkerStoreOptions {
  /** The driver checks the hash itself. */
  readonly verified?: boolean;
  /** Milliseconds before each repetition of a failed read. */
  readonly againMs?: readonly number[];
}

/**
 * The store as the activities use it, whichever driver stands behind it. It rejects with nothing but
 * a `StoreFault`, answers within 15 s, repeats a failed read for 1.5 s, and returns no text whose
 * SHA-256 differs from the reference.
 */
export function workerStore(
  store: BlobStore,
  { verified = false, againMs = AGAIN_MS }: WorkerStoreOptions = {},
): BlobStore {
  return {
    async put(text) {
      try {
        return await within(ANSWER_LIMIT_MS, () => store.put(text));
      } catch (error) {
        throw faultOf(error, 'unwritable');
      }
    },
    async get({ sha256 }) {
      for (let attempt = 0; ; attempt += 1) {
        try {
          const text = await within(ANSWER_LIMIT_MS, () => store.get({ sha256 }));
          if (verified || hash(text) === sha256) return text;
          throw new BlobError(
            'damaged',
            `blob ${sha256} is damaged: the blob store holds another text; ${RESTORE}`,
          );
        } catch (error) {
          const fault = faultOf(error, 'unreadable', sha256);
          const waitMs = againMs[attempt];
          const isFinal = fault.kind === 'invalid' || error instanceof LateError;
          if (waitMs === undefined || isFinal) throw fault;
          await pause(waitMs);
        }
      }
    },
  };
}

/**
 * Reads a blob for a stated purpose, e.g. `the run's context`, which the error then names. Rejects
 * with what the store rejects with.
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
    throw new StoreFault(kind, `${what} cannot be read: ${message}`, {
      cause,
      ...(sha256 !== undefined && { sha256 }),
    });
  }
}

/** What a driver threw. An error that is not a `BlobError` means that the store is down. */
function faultOf(error: unknown, otherwise: BlobErrorKind, sha256?: string): StoreFault {
  const kind = error instanceof BlobError ? error.kind : otherwise;
  const text = error instanceof Error ? error.message : String(error);
  const named = sha256 === undefined || text.includes(sha256) ? text : `blob ${sha256}: ${text}`;
  return new StoreFault(kind, named, { cause: error, ...(sha256 !== undefined && { sha256 }) });
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
