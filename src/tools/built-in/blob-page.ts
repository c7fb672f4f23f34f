import type { BlobStore } from '../../storage/blob-store.js';
import { readFor } from '../../storage/worker-store.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { isContinuation } from '../utf8.js';

/** A part of a stored text. All numbers are UTF-8 bytes of the whole text. */
export interface BlobPage {
  readonly text: string;
  /** Where the page really begins: never inside a character. */
  readonly offset: number;
  /** Where the next page begins; absent at the end. */
  readonly nextOffset?: number;
  readonly totalBytes: number;
}

/**
 * Reads at most `length` bytes from `offset` on. Both ends move back to the start of a character, so
 * pages that follow `nextOffset` give the whole text, each byte once; a character larger than `length`
 * is still given whole.
 */
export async function readBlobPage(
  store: Pick<BlobStore, 'get'>,
  ref: Pick<BlobRef, 'sha256'>,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<BlobPage> {
  const bytes = Buffer.from(await readFor('a text that was too large to be shown', ref, store));
  const start = characterStart(bytes, Math.min(offset, bytes.length));
  const cut = characterStart(bytes, Math.min(start + length, bytes.length));
  const end = cut > start ? cut : characterEnd(bytes, start);
  return {
    text: bytes.toString('utf8', start, end),
    offset: start,
    ...(end < bytes.length && { nextOffset: end }),
    totalBytes: bytes.length,
  };
}

function characterStart(bytes: Buffer, position: number): number {
  let at = position;
  while (at > 0 && isContinuation(bytes[at])) at -= 1;
  return at;
}

function characterEnd(bytes: Buffer, position: number): number {
  let at = Math.min(position + 1, bytes.length);
  while (at < bytes.length && isContinuation(bytes[at])) at += 1;
  return at;
}
