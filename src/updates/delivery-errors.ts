import { PerdureError } from '../core/errors.js';

/**
 * Why no worker answered: `missing`, no worker polls the run's task queue; `silent`, one polls it and
 * does not answer, since it is frozen, cut off, or busy. Null where this is not known, or not the reason.
 */
export type WorkerSeen = 'missing' | 'silent' | null;

/** The run refused a message or a decision. It has no effect, and repeating it has none either. */
export class RefusedError extends PerdureError {
  static readonly code = 'refused';
  override readonly name = 'RefusedError';
  override readonly code = RefusedError.code;
}

interface NotDeliveredOptions extends ErrorOptions {
  readonly mayArrive: boolean;
  readonly worker?: WorkerSeen;
  readonly messageId?: string | undefined;
}

/** No answer came to a message or a decision. The message of the error says why. */
export class NotDeliveredError extends PerdureError {
  static readonly code = 'not_delivered';
  override readonly name = 'NotDeliveredError';
  override readonly code = NotDeliveredError.code;
  /**
   * True: the run may have taken it, or may still. False: it did not reach the run and never will, so
   * it is safe to send it again.
   */
  readonly mayArrive: boolean;
  /** Why no worker answered, where this is known to be the reason. */
  readonly worker: WorkerSeen;
  /** The id that makes a repeat of a message safe: the run takes an id once. Null for a decision. */
  readonly messageId: string | null;

  constructor(
    message: string,
    { mayArrive, worker = null, messageId, ...options }: NotDeliveredOptions,
  ) {
    super(message, options);
    this.mayArrive = mayArrive;
    this.worker = worker;
    this.messageId = messageId ?? null;
  }
}
