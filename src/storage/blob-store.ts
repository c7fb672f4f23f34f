import type { BlobRef } from '../core/transcript/messages.js';
import { PerdureError } from '../core/errors.js';

/**
 * Where text goes that is too large for the history. Content-addressed: the same text always has the
 * same reference, so storing twice is harmless and nothing is ever overwritten.
 *
 * Contract: when `put` resolves, every worker can `get` the text, also after a crash. `get` resolves
 * with exactly the text that was stored (as UTF-8 keeps it) or rejects with a `BlobError`.
 */
export interface BlobStore {
  put(text: string): Promise<BlobRef>;
  get(ref: Pick<BlobRef, 'sha256'>): Promise<string>;
}

/**
 * - `invalid`: the reference is no SHA-256, so nothing was looked for
 * - `missing`: no such text here; another worker's store may have it
 * - `damaged`: the stored bytes are not those of the reference
 * - `unwritable` · `unreadable`: the storage refused (read-only, full, no permission)
 */
export type BlobErrorKind = 'invalid' | 'missing' | 'damaged' | 'unwritable' | 'unreadable';

/** The only error a `BlobStore` rejects with; the message names the place and the cure. */
export class BlobError extends PerdureError {
  static readonly code = 'blob';
  override readonly name = 'BlobError';
  override readonly code = BlobError.code;
  readonly kind: BlobErrorKind;

  constructor(kind: BlobErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Throws unless `sha256` is 64 lower-case hex digits: it may come from a model and becomes a path. */
export function assertSha256(sha256: unknown): asserts sha256 is string {
  if (typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256)) return;
  const shown = typeof sha256 === 'string' ? JSON.stringify(sha256.slice(0, 80)) : typeof sha256;
  throw new BlobError(
    'invalid',
    `${shown} is no blob reference; it must be a SHA-256 of 64 lower-case hex digits`,
  );
}
