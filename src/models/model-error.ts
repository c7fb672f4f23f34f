import { isObject } from '../core/json.js';
import { PerdureError } from '../core/errors.js';

/**
 * What went wrong with a model call, by who can mend it:
 * - `retry`: passes by itself (rate limit, 5xx, connection reset, timeout, unusable reply)
 * - `empty`: a well-formed reply that says nothing; worth a few more attempts, then an end
 * - `quota` · `credentials` · `model`: mended from outside; the run is blocked until then
 * - `context_too_long` · `request`: no retry can help; an end of the turn
 */
export type ModelErrorKind = (typeof KINDS)[number];

const KINDS = [
  'retry',
  'empty',
  'quota',
  'credentials',
  'model',
  'context_too_long',
  'request',
] as const;

export interface ModelErrorDetails {
  readonly kind: ModelErrorKind;
  /** Short machine name for reports, e.g. `rate_limit`, `http_502`, `connection_reset`, `bad_json`. */
  readonly type: string;
  readonly status?: number;
  /** Milliseconds the provider asked to wait. */
  readonly retryAfterMs?: number;
  readonly requestId?: string;
}

/** The only error a `Model` rejects with. The message holds no key and no request body. */
export class ModelError extends PerdureError {
  static readonly code = 'model';
  override readonly name = 'ModelError';
  override readonly code = ModelError.code;
  readonly details: ModelErrorDetails;

  constructor(message: string, details: ModelErrorDetails, options?: ErrorOptions) {
    super(message, options);
    this.details = details;
  }
}

/** Also of another copy of this package: an adapter may have been loaded beside the engine. */
export function isModelError(thrown: unknown): thrown is ModelError {
  if (thrown instanceof ModelError) return true;
  if (!(thrown instanceof Error) || thrown.name !== 'ModelError' || !('details' in thrown))
    return false;
  const { details } = thrown;
  if (!isObject(details) || typeof details['type'] !== 'string') return false;
  const kinds: readonly unknown[] = KINDS;
  return kinds.includes(details['kind']);
}
