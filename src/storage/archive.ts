import type { Message } from '../core/transcript/messages.js';
import { PerdureError } from '../core/errors.js';

/** Which run's messages are meant; the same through continue-as-new and reset. */
export interface ArchivedRun {
  readonly namespace: string;
  /** The workflow id: any text. */
  readonly id: string;
  /** Run id of the first execution, which tells apart runs that had the same id one after another. */
  readonly firstRunId: string;
}

/**
 * Keeps all that was said in a run, because the history lives only for the namespace's retention.
 *
 * Contract: when `append` resolves, the messages are there for every worker, also after a crash. It
 * may be called again with the same messages, at the same time too: each number `n` is given back
 * once. Where a number comes again with other words, as after a reset of the run, the newest hold.
 */
export interface Archive {
  /** Adds the messages whose number `n` is not there yet. */
  append(run: ArchivedRun, messages: readonly Message[]): Promise<void>;
  /**
   * The messages from number `from` on (default the first) before number `to` (default the end), in
   * order of `n`; none where nothing was archived.
   */
  read(
    run: ArchivedRun,
    range?: { readonly from?: number; readonly to?: number },
  ): Promise<readonly Message[]>;
}

/** `unwritable` · `unreadable`: the storage refused (read-only, full, no permission). */
export type ArchiveErrorKind = 'unwritable' | 'unreadable';

/** The only error an `Archive` rejects with; the message names the place and the cure. */
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
