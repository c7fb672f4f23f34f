/**
 * The type of a report on a result that could not be stored after the work was done. Its loss is
 * also part of the turn's outcome.
 */
export const STORAGE_LOST = 'storage_lost';

/**
 * A report on one failed attempt at a model call, or on a result that could not be stored, for
 * operators. It has no request bodies or keys.
 */
export interface AttemptReport {
  /** A short name such as `rate_limit`, `http_502`, `connection_reset`, or `bad_json`. */
  readonly type: string;
  readonly status?: number;
  /** Number of the attempt in its activity, from 1. */
  readonly attempt: number;
  /** Milliseconds until the next attempt; 0 if none follows. */
  readonly waitMs: number;
  /** The provider's id of the request, for its support team. */
  readonly requestId?: string;
  /** When the attempt failed, Unix time in ms. */
  readonly at: number;
  /** At most 300 characters. */
  readonly message: string;
}
