import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PerdureError } from '../core/errors.js';
import type { BlobRef } from '../core/transcript/messages.js';
import { RESTORE } from './files.js';

/**
 * Stores texts that are too large for the history. It is content-addressed: the same text always
 * has the same reference, so `put` is idempotent and nothing is overwritten.
 *
 * When `put` resolves, every worker can `get` the text, even after a crash. `get` resolves with
 * exactly the stored text (in UTF-8) or rejects with a `BlobError`.
 */
export interface BlobStore {
  put(text: string): Promise<BlobRef>;
  get(ref: Pick<BlobRef, 'sha256'>): Promise<string>;
  /** Absent: `perdure erase` reports the texts of this store as not erased. */
  readonly erasure?: BlobErasure;
}

/** A blob store that encrypts the texts of a run with the key of the run. */
export interface RunBlobs extends BlobStore {
  /** Returns the store for texts that belong to the run with this id. It reads all texts. */
  of(run: string): BlobStore;
}

/** Returns the store for texts of this run; the same store if it does not tell runs apart. */
export function blobsOfRun(store: BlobStore | RunBlobs, run: string): BlobStore {
  return 'of' in store ? store.of(run) : store;
}

/** A text that a blob store has. `at`: when `put` was last called with it, in Unix time in ms. */
export interface StoredBlob {
  readonly sha256: string;
  readonly at: number;
}

/**
 * What erasure needs of a blob store. `put` must refresh the time of a text that the store already
 * has, because no history may name it yet.
 */
export interface BlobErasure {
  /** Returns every text of the store, in any order. */
  list(): Promise<readonly StoredBlob[]>;
  /**
   * Removes a text unless `put` was called with it at `before` (Unix time in ms) or later. Returns
   * false if it was, and true if the store no longer has the text.
   */
  remove(ref: Pick<BlobRef, 'sha256'>, before: number): Promise<boolean>;
}

/**
 * - `invalid`: the reference is not a SHA-256, so nothing was looked up
 * - `missing`: this store does not have the text; another worker's store may have it
 * - `damaged`: the stored bytes have another hash
 * - `unwritable`, `unreadable`: the storage refused: it is read-only or full, or permissions are
 *   missing
 */
export type BlobErrorKind = 'invalid' | 'missing' | 'damaged' | 'unwritable' | 'unreadable';

/** Options of a `BlobError`. */
export interface BlobErrorOptions extends ErrorOptions {
  readonly kind: BlobErrorKind;
}

/**
 * The only error with which a `BlobStore` rejects; the message names the place and the fix.
 *
 * @example
 * ```ts
 * import type { BlobRef } from 'perdure/models';
 * import { BlobError } from 'perdure/worker';
 *
 * const texts = new Map<string, string>();
 *
 * export async function get({ sha256 }: BlobRef): Promise<string> {
 *   const text = texts.get(sha256);
 *   if (text !== undefined) return text;
 *   throw new BlobError(`blob ${sha256}: not found in memory`, { kind: 'missing' });
 * }
 * ```
 */
export class BlobError extends PerdureError {
  static readonly code = 'blob';
  override readonly name = 'BlobError';
  override readonly code = BlobError.code;
  readonly kind: BlobErrorKind;

  constructor(message: string, { kind, ...options }: BlobErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/**
 * Throws a `BlobError` unless `sha256` is 64 lowercase hex digits: it may come from a model, and it
 * becomes a path.
 */
export function assertSha256(sha256: unknown): asserts sha256 is string {
  if (typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)) return;
  const shown = typeof sha256 === 'string' ? JSON.stringify(sha256.slice(0, 80)) : typeof sha256;
  throw new BlobError(
    `${shown} is not a blob reference; expected a SHA-256 of 64 lowercase hex digits`,
    { kind: 'invalid' },
  );
}

/**
 * Identifies the runs of a workflow id, which may be any text. Successive runs can have the same
 * id.
 */
export interface ArchivedRun {
  readonly namespace: string;
  readonly id: string;
}

/** Identifies an archived history: one segment of a run, up to one of its events. */
export interface ArchivedHistory {
  /** The run id of the run's first segment; the same after continue-as-new and reset. */
  readonly firstRunId: string;
  /** The run id of the segment. */
  readonly runId: string;
  /** The number of events. A segment that is archived again has more of them. */
  readonly events: number;
  /** When the last event happened: Unix time in ms. */
  readonly at: number;
}

/**
 * Stores the histories of runs, because the server deletes them after the namespace's retention.
 *
 * An archived history never changes: a segment that has grown becomes another one, and readers use
 * the longest. When `write` resolves, every worker can read the history, even after a crash.
 * `write` may be called again, also concurrently, with the same history.
 */
export interface Archive {
  /**
   * Stores a history: JSON text in the form of Temporal's own tools. Rejects with an
   * `ArchiveError`.
   */
  write(run: ArchivedRun, history: ArchivedHistory, json: string): Promise<void>;
  /**
   * Returns the archived histories of a run, in any order; an empty list if there are none. Rejects
   * with an `ArchiveError`.
   */
  list(run: ArchivedRun): Promise<readonly ArchivedHistory[]>;
  /** Returns the text of a history that `list` has returned. Rejects with an `ArchiveError`. */
  read(run: ArchivedRun, history: ArchivedHistory): Promise<string>;
  /** Absent: `perdure erase` reports the histories of this archive as not erased. */
  readonly erasure?: ArchiveErasure;
}

/** An archived history with its text. */
export interface ArchivedText {
  readonly history: ArchivedHistory;
  readonly json: string;
}

/** What erasure needs of an archive. All methods reject with an `ArchiveError`. */
export interface ArchiveErasure {
  /** Yields every archived history of a namespace; null: of all namespaces. */
  all(namespace: string | null): AsyncIterable<ArchivedText>;
  /** Removes a history; has no effect if there is none. */
  remove(run: ArchivedRun, history: ArchivedHistory): Promise<void>;
  /** Stores an entry of the erasure log durably, in place of an earlier one with this name. */
  record(name: string, json: string): Promise<void>;
  /** Returns the texts of the erasure log, by name. */
  records(): Promise<ReadonlyMap<string, string>>;
}

/** The storage refused to write or to read: it is read-only or full, or permissions are missing. */
export type ArchiveErrorKind = 'unwritable' | 'unreadable';

/** Options of an `ArchiveError`. */
export interface ArchiveErrorOptions extends ErrorOptions {
  readonly kind: ArchiveErrorKind;
}

/**
 * The only error an `Archive` rejects with; the message names the place and the fix.
 *
 * @example
 * ```ts
 * import { ArchiveError } from 'perdure/worker';
 *
 * export function writeFailed(folder: string, cause: unknown): ArchiveError {
 *   const message = `${folder} cannot be written; check the mount`;
 *   return new ArchiveError(message, { kind: 'unwritable', cause });
 * }
 * ```
 */
export class ArchiveError extends PerdureError {
  static readonly code = 'archive';
  override readonly name = 'ArchiveError';
  override readonly code = ArchiveError.code;
  readonly kind: ArchiveErrorKind;

  constructor(message: string, { kind, ...options }: ArchiveErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/**
 * Thrown if work takes longer than its limit. The work continues unless its signal ends it: a disk
 * that hangs cannot be interrupted.
 */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Returns the result of `work`. If it takes longer than `limitMs`, rejects with a `TimeoutError`
 * and aborts the signal that `work` receives.
 */
export async function within<T>(
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `no answer within ${limitMs / 1_000} s; check the disk or the service behind it`;
    timer = setTimeout(() => {
      const error = new TimeoutError(message);
      reject(error);
      over.abort(error);
    }, limitMs);
  });
  try {
    return await Promise.race([work(over.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

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
