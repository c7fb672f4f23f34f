import { isObject } from '../core/json.js';
import { PerdureError } from '../core/errors.js';

/**
 * The failure of a model call, by what fixes it:
 * - `retry`: passes by itself (rate limit, 5xx, connection reset, timeout, unusable reply)
 * - `empty`: a well-formed reply without text or calls; a few more attempts, then the turn ends
 * - `malformed`: the server could not read what its model wrote, or the answer has no message, or a
 *   call without a name; a few more attempts, then the turn ends
 * - `quota` · `credentials` · `model`: an operator must fix it; the run is blocked until then
 * - `bad_request`: the provider refused the request for another reason; the run is blocked until a
 *   probe is accepted
 * - `context_too_long` · `request`: no retry can help; the turn ends
 */
export type ModelErrorKind = (typeof KINDS)[number];

const KINDS = [
  'retry',
  'empty',
  'malformed',
  'quota',
  'credentials',
  'model',
  'bad_request',
  'context_too_long',
  'request',
] as const;

/** The type of a failure of kind `malformed` that the server itself reports. */
export const MALFORMED = 'malformed_reply';

/** What a failed model call is known by: who can fix it, and what the provider said. Times are in ms. */
export interface ModelErrorDetails {
  readonly kind: ModelErrorKind;
  /**
   * A short machine name for reports, e.g. `rate_limit`, `http_502`, `connection_reset`,
   * `bad_json`.
   */
  readonly type: string;
  readonly status?: number;
  /** Milliseconds that the provider asks to wait. */
  readonly retryAfterMs?: number;
  readonly requestId?: string;
}

/** Options of a `ModelError`: its details, and what caused it. */
export type ModelErrorOptions = ModelErrorDetails & ErrorOptions;

/**
 * The only error that a `Model` rejects with. The message contains no key and no request body.
 *
 * @example
 * ```ts
 * import { ModelError, type Model } from 'perdure';
 *
 * export const offline: Model = {
 *   call: async () => {
 *     throw new ModelError('the model is not loaded', { kind: 'model', type: 'not_loaded' });
 *   },
 * };
 * ```
 */
export class ModelError extends PerdureError {
  static readonly code = 'model';
  override readonly name = 'ModelError';
  override readonly code = ModelError.code;
  readonly details: ModelErrorDetails;

  constructor(message: string, { cause, ...details }: ModelErrorOptions) {
    super(message, cause === undefined ? {} : { cause });
    this.details = details;
  }
}

/**
 * Whether a value is a `ModelError`, possibly from another copy of this package: an adapter may
 * have its own.
 */
export function isModelError(thrown: unknown): thrown is ModelError {
  if (thrown instanceof ModelError) return true;
  if (!(thrown instanceof Error) || thrown.name !== 'ModelError' || !('details' in thrown))
    return false;
  const { details } = thrown;
  if (!isObject(details) || typeof details['type'] !== 'string') return false;
  const kinds: readonly unknown[] = KINDS;
  return kinds.includes(details['kind']);
}
