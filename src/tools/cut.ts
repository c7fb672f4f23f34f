import type { BlobStore } from '../blobs/blob-store.js';
import type { BlobRef } from '../core/messages.js';
import { headBytes, tailBytes } from './utf8.js';

const DEFAULT_MAX_BYTES = 64 * 1024;
const HEAD_BYTES = 11 * 1024;
const TAIL_BYTES = 4 * 1024;

export interface FittedText {
  /** What the model sees: the whole text, or its head and tail (at most 16 KiB). */
  readonly text: string;
  /** Where the whole text lies, if it was cut. */
  readonly blob?: BlobRef;
}

/**
 * Keeps text of at most `maxBytes` (64 KiB of UTF-8 by default) as it is; stores larger text and cuts
 * it. Rejects with a `BlobError` when it cannot be stored: a result must not be reported as there
 * before it is.
 */
export async function fitText(
  text: string,
  store: BlobStore,
  options: { readonly maxBytes?: number } = {},
): Promise<FittedText> {
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  if (Buffer.byteLength(text) <= maxBytes) return { text };
  const blob = await store.put(text);
  return {
    text: cutText(text, { ref: blob, keepBytes: Math.min(maxBytes, HEAD_BYTES + TAIL_BYTES) }),
    blob,
  };
}

/**
 * The head and the tail of a text, the omitted size between them, and how to read on; characters stay
 * whole. `keepBytes` (15 KiB by default) counts what is kept, without the note.
 */
export function cutText(
  text: string,
  {
    ref,
    keepBytes = HEAD_BYTES + TAIL_BYTES,
  }: { readonly ref: BlobRef; readonly keepBytes?: number },
): string {
  const tailSize = Math.floor((keepBytes * TAIL_BYTES) / (HEAD_BYTES + TAIL_BYTES));
  const head = headBytes(text, keepBytes - tailSize);
  const tail = tailBytes(text, tailSize);
  const headSize = Buffer.byteLength(head);
  const omitted = ref.bytes - headSize - Buffer.byteLength(tail);
  const call = JSON.stringify({ ref: ref.sha256, offset: headSize });
  return `${head}\n[… ${omitted} of ${ref.bytes} bytes omitted; read on with read_result(${call}) …]\n${tail}`;
}
