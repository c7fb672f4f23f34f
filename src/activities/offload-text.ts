import { setTimeout as pause } from 'node:timers/promises';
import { BlobError, type BlobStore } from '../storage/blob-store.js';
import { cutText, fitText, kept, type FitOptions, type FittedText } from '../tools/result/cut.js';

/** Waits before the store is asked again, in milliseconds. */
const AGAIN_MS = [100, 500, 1_500];

/**
 * Keeps a text that has already been paid for, or that tells of something that has happened. A store
 * that fails is asked again, the work behind the text is never done again for its sake: in the end
 * the head and the tail are kept, and say what is lost and why.
 */
export async function keepText(
  text: string,
  store: BlobStore,
  options: FitOptions = {},
): Promise<FittedText> {
  const end = await patiently(() => fitText(text, store, options));
  if ('done' in end) return end.done;
  return {
    text: cutText(text, { lost: end.fault, keepBytes: kept(options.maxBytes ?? Infinity) }),
  };
}

/** Asks a store again that fails, some times; then says how it failed. */
export async function patiently<T>(
  work: () => Promise<T>,
): Promise<{ readonly done: T } | { readonly fault: string }> {
  let fault = '';
  for (const waitMs of [0, ...AGAIN_MS]) {
    if (waitMs > 0) await pause(waitMs);
    try {
      return { done: await work() };
    } catch (error) {
      if (!(error instanceof BlobError)) throw error;
      fault = error.message;
    }
  }
  return { fault };
}
