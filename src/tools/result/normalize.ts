import { isUtf8 } from 'node:buffer';
import { types } from 'node:util';
import type { Json } from '../../core/text/json.js';
import { wellFormed } from '../../core/text/text.js';
import type { BlobRef } from '../../core/transcript/messages.js';
import { redact, redactJsonText } from '../../secrets/redact.js';
import type { BlobStore } from '../../storage/blob-store.js';
import { binaryNote, headBytes, normalizeError, tailBytes, toPlain } from './plain.js';

const MAX_BYTES = 8 * 1024 * 1024;
const MAX_ITEMS = 10_000;

type Part = string | Uint8Array | Json;

/** Returns whether a value is a stream, a web stream, or an async generator. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const { [Symbol.asyncIterator]: iterate } = value as { [Symbol.asyncIterator]?: unknown };
    return typeof iterate === 'function';
  } catch {
    return false;
  }
}

/**
 * Reads a stream until its end, 8 MiB, 10,000 values, or the abort of `signal`, whichever comes
 * first. A note is appended if that was not the end. Text and bytes are joined, bytes that are not
 * UTF-8 become a note, and other values become a list.
 *
 * Never rejects. Without a signal, it waits indefinitely for a stream that never ends and never
 * yields.
 */
export async function collect(
  source: AsyncIterable<unknown>,
  signal: AbortSignal | undefined,
): Promise<Json> {
  const parts: Part[] = [];
  const reason = await drain(source, parts, signal);
  const joined = join(parts);
  if (reason === undefined) return joined;
  if (typeof joined === 'string') return `${joined}\n[${reason}]`;
  return Array.isArray(joined)
    ? [...(joined as readonly Json[]), `[${reason}]`]
    : [joined, `[${reason}]`];
}

/** Reads into `parts`. Returns why reading stopped before the end, or undefined at the end. */
async function drain(
  source: AsyncIterable<unknown>,
  parts: Part[],
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const aborted = abortOf(signal);
  let iterator: AsyncIterator<unknown> | undefined;
  let size = 0;
  try {
    iterator = source[Symbol.asyncIterator]();
    while (parts.length < MAX_ITEMS && size < MAX_BYTES) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next === 'aborted') return leave(iterator, 'the stream was canceled here');
      if (next.done === true) return undefined;
      const part = types.isUint8Array(next.value) ? next.value : toPlain(next.value);
      size += sizeOf(part);
      parts.push(part);
    }
    return leave(iterator, `the stream continues; reading stopped after ${size} bytes`);
  } catch (error) {
    return `the stream failed here: ${normalizeError(error).message}`;
  } finally {
    aborted.release();
  }
}

/** Lets the source clean up without waiting for it. */
function leave(iterator: AsyncIterator<unknown>, reason: string): string {
  void Promise.resolve(iterator.return?.()).catch(() => undefined);
  return reason;
}

function abortOf(signal: AbortSignal | undefined): {
  readonly promise: Promise<'aborted'>;
  readonly release: () => void;
} {
  const { promise, resolve } = withResolver();
  const onAbort = (): void => resolve('aborted');
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  return { promise, release: () => signal?.removeEventListener('abort', onAbort) };
}

function withResolver(): {
  readonly promise: Promise<'aborted'>;
  readonly resolve: (value: 'aborted') => void;
} {
  let resolvePromise: ((value: 'aborted') => void) | undefined;
  const promise = new Promise<'aborted'>((resolve) => {
    resolvePromise = resolve;
  });
  return { promise, resolve: (value) => resolvePromise?.(value) };
}

function sizeOf(part: Part): number {
  if (typeof part === 'string' || types.isUint8Array(part)) return part.length;
  return JSON.stringify(part).length;
}

function join(parts: readonly Part[]): Json {
  const isText = parts.every((part) => typeof part === 'string' || types.isUint8Array(part));
  if (!isText) {
    return parts.map((part) => (types.isUint8Array(part) ? binaryNote(Buffer.from(part)) : part));
  }
  const bytes = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)),
  );
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : binaryNote(bytes);
}

const MAX_CHARACTERS = 64 * 1024 * 1024;

/**
 * Converts a tool's result into text for the model: text stays unchanged, streams are read (see
 * `collect`), other values become JSON (see `toPlain`), and undefined becomes "(no result)".
 * Secrets are redacted.
 *
 * Never rejects; `signal` ends the reading of a stream. The text may still be large: see `fitText`.
 */
export async function normalizeResult(
  value: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<string> {
  if (value === undefined) return '(no result)';
  const plain = isAsyncIterable(value) ? await collect(value, options.signal) : toPlain(value);
  const text = typeof plain === 'string' ? redact(plain) : redactJsonText(serialize(plain));
  return wellFormed(text);
}

function serialize(value: unknown): string {
  try {
    const text = JSON.stringify(value);
    if (text.length <= MAX_CHARACTERS) return text;
    return `${text.slice(0, MAX_CHARACTERS)}[${text.length - MAX_CHARACTERS} characters omitted]`;
  } catch {
    // Only a text beyond V8's maximum string length gets here: escaping can turn one character into
    // six.
    return '[a result too large to be written as JSON]';
  }
}

const DEFAULT_MAX_BYTES = 64 * 1024;
const HEAD_BYTES = 11 * 1024;
const TAIL_BYTES = 4 * 1024;

/** A text that fits the history. */
export interface FittedText {
  /** What the model sees: the whole text, or its head and tail (at most 16 KiB). */
  readonly text: string;
  /** The reference to the whole text, if it was cut. */
  readonly blob?: BlobRef;
  /** Why the whole text could not be stored. */
  readonly lost?: string;
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

/** Maximum parts of a value that are checked. */
const MAX_CHECKED = 100_000;

/**
 * Returns the first part of a value that JSON cannot express, with its path, such as
 * `a Map at $.items`; null if there is none. Dates, errors, bytes, and objects with `toJSON` have one
 * form in JSON, and fields without a value are left out.
 */
export function partNotJson(value: unknown): string | null {
  try {
    return findPart(value, '$', { left: MAX_CHECKED, around: [] });
  } catch {
    // Such as a getter that throws: the note in the text says so.
    return null;
  }
}

function findPart(
  value: unknown,
  path: string,
  walk: { left: number; readonly around: readonly object[] },
): string | null {
  walk.left -= 1;
  if (walk.left < 0 || value === null || typeof value === 'string') return null;
  if (typeof value === 'bigint') return `a BigInt at ${path}`;
  if (typeof value === 'function' || typeof value === 'symbol')
    return `a ${typeof value} at ${path}`;
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${value} at ${path}`;
  if (typeof value !== 'object') return null;
  if (walk.around.includes(value)) return `a cycle at ${path}`;
  const kind = foreignKind(value);
  if (kind !== null) return `${kind} at ${path}`;
  if (hasOwnForm(value)) return null;
  const inner = { left: walk.left, around: [...walk.around, value] };
  for (const [key, item] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
    const part = findPart(item, at, inner);
    if (part !== null) return part;
  }
  walk.left = inner.left;
  return null;
}

/** Returns what an object is whose content is no property, so that JSON would lose it; else null. */
function foreignKind(value: object): string | null {
  if (types.isMap(value)) return 'a Map';
  if (types.isSet(value)) return 'a Set';
  if (types.isPromise(value)) return 'a Promise';
  if (types.isRegExp(value)) return 'a RegExp';
  if (types.isWeakMap(value) || types.isWeakSet(value)) return 'a weak collection';
  if (hasOwnForm(value) || Array.isArray(value) || Object.keys(value).length > 0) return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return null;
  return `an instance of ${value.constructor.name} without fields of its own`;
}

/** Whether an object has one form in JSON, besides its properties. */
function hasOwnForm(value: object): boolean {
  return (
    value instanceof Error ||
    value instanceof Blob ||
    types.isNativeError(value) ||
    types.isAnyArrayBuffer(value) ||
    types.isBoxedPrimitive(value) ||
    ArrayBuffer.isView(value) ||
    typeof Reflect.get(value, 'toJSON') === 'function' ||
    (!Array.isArray(value) &&
      typeof Reflect.get(value, Symbol.iterator) === 'function' &&
      !types.isMap(value) &&
      !types.isSet(value)) ||
    isAsyncIterable(value)
  );
}
