import type { BlobRef } from '../core/transcript/messages.js';
import { PerdureError } from '../core/errors.js';

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
 * import { BlobError, type BlobRef } from 'perdure';
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
