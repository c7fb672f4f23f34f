import { isUtf8 } from 'node:buffer';
import { types } from 'node:util';
import type { Json } from '../../core/json.js';
import { normalizeError } from './normalize-error.js';
import { binaryNote, toPlain } from './plain.js';

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
