/** What one failed attempt of a model call leaves behind: for operators, without bodies or keys. */
export interface AttemptReport {
  /** Short machine name, e.g. `rate_limit`, `http_502`, `connection_reset`, `bad_json`. */
  readonly type: string;
  readonly status?: number;
  /** Counted from 1 in the activity that made it. */
  readonly attempt: number;
  /** Milliseconds until the next attempt; 0 where none follows. */
  readonly waitMs: number;
  /** The provider's name for the request, for its support. */
  readonly requestId?: string;
  /** Unix time in milliseconds at which the attempt failed. */
  readonly at: number;
  /** At most 300 characters. */
  readonly message: string;
}
