/**
 * What is known of something that was said to a run and was not executeUpdate:
 * - `refused`: the run, or the client for it, refused it; it has no effect, and sending it again has none
 * - `not_delivered`: it did not reach the run and will not; it is safe to send it again
 * - `unknown`: it may have been taken, or may still arrive; send it again under the same id only
 */
export type Delivery = 'refused' | 'not_delivered' | 'unknown';

/**
 * Why nobody executeUpdate: `missing`, no worker polls the run's task queue; `silent`, one polls it and does
 * not answer: it is frozen, cut off, or busy. Null where that is not known, or not the reason.
 */
export type WorkerSeen = 'missing' | 'silent' | null;

interface Undecided extends ErrorOptions {
  readonly delivery: Delivery;
  readonly worker?: WorkerSeen;
  readonly messageId?: string;
}

/** What was said to a run did not get through, as far as is known; the message says why. */
export class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
  /** Whether it may have an effect all the same. */
  readonly delivery: Delivery;
  readonly worker: WorkerSeen;
  /** Of a message: sent again under this id it is the same message. Null for what is no message. */
  readonly messageId: string | null;

  constructor(
    message: string,
    { delivery, worker = null, messageId, ...options }: Undecided = { delivery: 'refused' },
  ) {
    super(message, options);
    this.delivery = delivery;
    this.worker = worker;
    this.messageId = messageId ?? null;
  }
}
