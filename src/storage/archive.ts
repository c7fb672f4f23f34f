import type { Message } from '../core/transcript/messages.js';
import { PerdureError } from '../core/errors.js';

/** Identifies a run in an archive; the same after continue-as-new and reset. */
export interface ArchivedRun {
  readonly namespace: string;
  /** The workflow id, which may be any text. */
  readonly id: string;
  /** The run id of the first execution, which distinguishes successive runs with the same id. */
  readonly firstRunId: string;
}

/**
 * Stores all messages of a run, because its history is deleted after the namespace's retention.
 *
 * When `append` resolves, every worker can read the messages, even after a crash. `append` may be called
 * again, also concurrently, with the same messages: `read` returns each number `n` once. If a number is
 * appended again with another text, as after a reset of the run, the newest one is valid.
 */
export interface Archive {
  /** Adds the messages whose number `n` is not stored yet. Rejects with an `ArchiveError`. */
  append(run: ArchivedRun, messages: readonly Message[]): Promise<void>;
  /**
   * Returns the messages from number `from` (default: the first) to before number `to` (default: the end),
   * in order of `n`; none if nothing was archived. Rejects with an `ArchiveError`.
   */
  read(
    run: ArchivedRun,
    range?: { readonly from?: number; readonly to?: number },
  ): Promise<readonly Message[]>;
}

/** The storage refused to write or to read: it is read-only or full, or permissions are missing. */
export type ArchiveErrorKind = 'unwritable' | 'unreadable';

/**
 * The only error an `Archive` rejects with; the message names the place and the fix.
 *
 * @example
 * ```ts
 * import { ArchiveError } from 'perdure';
 *
 * export function writeFailed(folder: string, cause: unknown): ArchiveError {
 *   return new ArchiveError('unwritable', `${folder} cannot be written; check the mount`, { cause });
 * }
 * ```
 */
export class ArchiveError extends PerdureError {
  static readonly code = 'archive';
  override readonly name = 'ArchiveError';
  override readonly code = ArchiveError.code;
  readonly kind: ArchiveErrorKind;

  constructor(kind: ArchiveErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
