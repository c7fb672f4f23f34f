import type { BlobStore } from '../../storage/blob-store.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { headBytes, tailBytes } from '../utf8.js';

const DEFAULT_MAX_BYTES = 64 * 1024;
const HEAD_BYTES = 11 * 1024;
const TAIL_BYTES = 4 * 1024;

/** A text that fits the history. */
export interface FittedText {
  /** What the model sees: the whole text, or its head and tail (at most 16 KiB). */
  readonly text: string;
  /** The reference to the whole text, if it was cut. */
  readonly blob?: BlobRef;
}

/** Options of `fitText`. */
export interface FitOptions {
  /** The limit in bytes of UTF-8; default 64 KiB. */
  readonly maxBytes?: number;
  /** False if the reader has no tool to read more; the note then names none. */
  readonly readable?: boolean;
}

/**
 * Returns text of at most `maxBytes` unchanged; stores larger text and returns its head and tail.
 * Rejects with a `BlobError` if it cannot be stored: a result must not be reported before it is
 * stored.
 */
export async function fitText(
  text: string,
  store: BlobStore,
  { maxBytes = DEFAULT_MAX_BYTES, readable = true }: FitOptions = {},
): Promise<FittedText> {
  if (fits(text, maxBytes)) return { text };
  const blob = await store.put(text);
  return {
    text: cutText(text, { ...(readable && { ref: blob }), keepBytes: keptBytes(maxBytes) }),
    blob,
  };
}

/** Returns how many bytes of a text are kept, without the note, if it must be cut. */
export function keptBytes(maxBytes: number): number {
  return Math.min(maxBytes, HEAD_BYTES + TAIL_BYTES);
}

/** Also limits the encoded size, since a control character takes six bytes in JSON. */
function fits(text: string, maxBytes: number): boolean {
  if (Buffer.byteLength(text) > maxBytes) return false;
  return text.length * 6 <= maxBytes || Buffer.byteLength(JSON.stringify(text)) <= 2 * maxBytes;
}

/**
 * Returns the head and the tail of a text with a note between them: the omitted size, and how to
 * read more, or why that is impossible (`lost`). Characters stay whole. `keepBytes` (15 KiB by
 * default) is the size of head and tail without the note.
 */
export function cutText(
  text: string,
  options: {
    readonly ref?: BlobRef;
    readonly lost?: string;
    readonly keepBytes?: number;
  },
): string {
  const { ref, lost, keepBytes = HEAD_BYTES + TAIL_BYTES } = options;
  const tailSize = Math.floor((keepBytes * TAIL_BYTES) / (HEAD_BYTES + TAIL_BYTES));
  const head = headBytes(text, keepBytes - tailSize);
  const tail = tailBytes(text, tailSize);
  const headSize = Buffer.byteLength(head);
  const bytes = Buffer.byteLength(text);
  const omitted = `${bytes - headSize - Buffer.byteLength(tail)} of ${bytes} bytes omitted`;
  const next = [
    ...(ref
      ? [`read on with read_result(${JSON.stringify({ ref: ref.sha256, offset: headSize })})`]
      : []),
    ...(lost === undefined ? [] : [`they could not be stored: ${lost}`]),
  ];
  return `${head}\n[… ${[omitted, ...next].join('; ')} …]\n${tail}`;
}
