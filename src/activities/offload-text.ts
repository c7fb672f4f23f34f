import { setTimeout as pause } from 'node:timers/promises';
import { BlobError, type BlobStore } from '../storage/blob-store.js';
import {
  cutText,
  fitText,
  keptBytes,
  type FitOptions,
  type FittedText,
} from '../tools/result/cut.js';

/** Waits in ms before each further attempt to write. */
const RETRY_MS = [100, 500, 1_500];

/**
 * Returns a text that fits the history, and offloads the whole text to the blob store if it is too
 * large. The text has been paid for, or reports a side effect, so a store that stays down never
 * causes the work to be repeated. In that case, it returns the head and the tail, with a note on
 * what is lost and why.
 */
export async function offloadText(
  text: string,
  store: BlobStore,
  options: FitOptions = {},
): Promise<FittedText> {
  const stored = await retryStore(() => fitText(text, store, options));
  if ('value' in stored) return stored.value;
  const keepBytes = keptBytes(options.maxBytes ?? Infinity);
  return { text: cutText(text, { lost: stored.fault, keepBytes }) };
}

/**
 * Repeats work that fails with a `BlobError` up to three times, over about two seconds. Returns its
 * value, or the message of the last error. Throws any other error at once.
 */
export async function retryStore<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T } | { readonly fault: string }> {
  let fault = '';
  for (const waitMs of [0, ...RETRY_MS]) {
    if (waitMs > 0) await pause(waitMs);
    try {
      return { value: await work() };
    } catch (error) {
      if (!(error instanceof BlobError)) throw error;
      fault = error.message;
    }
  }
  return { fault };
}
