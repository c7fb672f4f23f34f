import { PerdureError } from '../core/errors.js';

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
 * import { ArchiveError } from 'perdure';
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
