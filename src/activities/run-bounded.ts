import { formatDuration } from '../core/text/duration.js';
import { setMaxListeners } from 'node:events';
import { runAttributed, StrayError } from '../tools/stray-errors.js';

/** How a bounded function ended. */
export type BoundedResult<T> =
  | { readonly type: 'value'; readonly value: T }
  | { readonly type: 'thrown'; readonly error: unknown }
  | { readonly type: 'timeout' }
  | { readonly type: 'cancelled' };

/** The limits of a bounded function, and its name in errors. */
export interface Bounds {
  /** A name for people, such as `tool "refund"`. */
  readonly name: string;
  readonly timeoutMs: number;
  /** Cancels the function; usually the activity's own signal. */
  readonly cancelled: AbortSignal;
}

/** Milliseconds for a function that honors its signal to report its result. */
const GRACE_MS = 2_000;

/**
 * Runs a user function or a model call, subject to a time limit and the activity's cancellation.
 * Resolves when the function ends, or `GRACE_MS` after its signal was aborted: a function that
 * ignores its signal is abandoned, and its slot on the worker becomes free. An error that the
 * function raises outside its promise counts as thrown, and aborts the signal. Never rejects.
 */
export async function runBounded<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: Bounds,
): Promise<BoundedResult<T>> {
  const abort = new AbortController();
  const { signal } = abort;
  // A tool may listen any number of times, such as once for each of its requests.
  setMaxListeners(0, signal);
  // Node would keep a signal from AbortSignal.any, and thus the whole activity, in memory
  // indefinitely.
  const cancel = (): void => abort.abort(bounds.cancelled.reason);
  if (bounds.cancelled.aborted) cancel();
  else bounds.cancelled.addEventListener('abort', cancel, { once: true });
  const timers: NodeJS.Timeout[] = [];
  const after = (ms: number): Promise<void> =>
    new Promise((resolve) => timers.push(setTimeout(resolve, ms)));
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const timedOut = after(bounds.timeoutMs).then(() =>
    abort.abort(new Error(`timed out after ${formatDuration(bounds.timeoutMs, { as: 'exact' })}`)),
  );
  const abandoned = aborted.then(() => after(GRACE_MS)).then(() => interrupted(bounds.cancelled));
  try {
    return await Promise.race([
      runToEnd(run, { abort, bounds }),
      abandoned,
      timedOut.then(() => abandoned),
    ]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    bounds.cancelled.removeEventListener('abort', cancel);
  }
}

/**
 * Runs a function like `runBounded`, and returns its value. Throws what the function threw, the
 * reason of the cancellation, or at the time limit the error that `timeoutError` creates.
 */
export async function runBoundedOrThrow<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: Bounds & { readonly timeoutError: () => Error },
): Promise<T> {
  const end = await runBounded(run, bounds);
  switch (end.type) {
    case 'value':
      return end.value;
    case 'thrown':
      throw end.error;
    case 'cancelled':
      throw bounds.cancelled.reason;
    case 'timeout':
      throw bounds.timeoutError();
  }
}

async function runToEnd<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { abort, bounds }: { abort: AbortController; bounds: Bounds },
): Promise<BoundedResult<T>> {
  const { signal } = abort;
  try {
    return { type: 'value', value: await runAttributed(bounds.name, () => run(signal)) };
  } catch (error) {
    // An error thrown after an abort does not show the function's earlier side effects.
    if (signal.aborted) return interrupted(bounds.cancelled);
    if (error instanceof StrayError) abort.abort(error);
    return { type: 'thrown', error };
  }
}

function interrupted(cancelled: AbortSignal): BoundedResult<never> {
  return { type: cancelled.aborted ? 'cancelled' : 'timeout' };
}
