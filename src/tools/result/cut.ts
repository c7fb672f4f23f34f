import type { BlobStore } from '../../storage/blob-store.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { headBytes, tailBytes } from '../utf8.js';

const DEFAULT_MAX_BYTES = 64 * 1024;
const HEAD_BYTES = 11 * 1024;
const TAIL_BYTES = 4 * 1024;

export interface FittedText {
  /** What the model sees: the whole text, or its head and tail (at most 16 KiB). */
  readonly text: string;
  /** Where the whole text lies, if it was cut. */
  readonly blob?: BlobRef;
}

export interface FitOptions {
  readonly maxBytes?: number;
  /** False: whoever reads it has no tool to read on with, so the note names none. */
  readonly readable?: boolean;
}

/**
 * Keeps text of at most `maxBytes` (64 KiB of UTF-8 by default) as it is; stores larger text and cuts
 * it. Rejects with a `BlobError` when it cannot be stored: a result must not be reported as there
 * before it is.
 */
export async function fitText(
  text: string,
  store: BlobStore,
  { maxBytes = DEFAULT_MAX_BYTES, readable = true }: FitOptions = {},
): Promise<FittedText> {
  if (fits(text, maxBytes)) return { text };
  const blob = await store.put(text);
  return {
    text: cutText(text, { ...(readable && { ref: blob }), keepBytes: kept(maxBytes) }),
    blob,
  };
}

/** Of a text that has to be cut to fit, without the note. */
export function kept(maxBytes: number): number {
  return Math.min(maxBytes, HEAD_BYTES + TAIL_BYTES);
}

/** Control characters take six bytes each in JSON, so the encoded size counts too. */
function fits(text: string, maxBytes: number): boolean {
  if (Buffer.byteLength(text) > maxBytes) return false;
  return text.length * 6 <= maxBytes || Buffer.byteLength(JSON.stringify(text)) <= 2 * maxBytes;
}

/**
 * The head and the tail of a text, the omitted size between them, and how to read on, or why that
 * cannot be; characters stay whole. `keepBytes` (15 KiB by default) counts what is kept, without the
 * note.
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
    ...(lost === undefined ? [] : [`they could not be kept: ${lost}`]),
  ];
  return `${head}\n[… ${[omitted, ...next].join('; ')} …]\n${tail}`;
}
