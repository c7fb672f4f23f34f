import { attributed, StrayError } from '../../tools/stray-errors.js';

/** How the execution of a tool came to an end. */
export type SettledTool<T> =
  | { readonly type: 'value'; readonly value: T }
  | { readonly type: 'thrown'; readonly error: unknown }
  | { readonly type: 'timeout' }
  | { readonly type: 'cancelled' };

/** What a function may take, and what it is called where it goes wrong. */
export interface ToolBounds {
  /** As people know it: `tool "refund"`. */
  readonly name: string;
  readonly timeoutMs: number;
  readonly cancelled: AbortSignal;
}

/** A tool that honors its signal gets this long to say what it had done. */
const GRACE_MS = 2_000;

/**
 * Runs a tool's function under its clock and the call's cancellation. A function that ignores both
 * is left behind: its promise is not waited for, its slot on the worker is free. So is one that raised
 * an error outside its promise: that is what it has thrown, and its signal is aborted.
 */
export async function settleTool<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: ToolBounds,
): Promise<SettledTool<T>> {
  const expiry = new AbortController();
  const { signal } = expiry;
  // Not AbortSignal.any: Node keeps such a signal, and with it all of the activity, for ever.
  const cancel = (): void => expiry.abort(bounds.cancelled.reason);
  if (bounds.cancelled.aborted) cancel();
  else bounds.cancelled.addEventListener('abort', cancel, { once: true });
  const timers: NodeJS.Timeout[] = [];
  const after = (ms: number): Promise<void> =>
    new Promise((resolve) => timers.push(setTimeout(resolve, ms)));
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const late = after(bounds.timeoutMs).then(() =>
    expiry.abort(new Error(`the tool's ${bounds.timeoutMs} ms are over`)),
  );
  const abandoned = aborted.then(() => after(GRACE_MS)).then(() => brokenOff(bounds.cancelled));
  try {
    return await Promise.race([
      settle(run, { expiry, bounds }),
      abandoned,
      late.then(() => abandoned),
    ]);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    bounds.cancelled.removeEventListener('abort', cancel);
  }
}

/** The value, or what stands in its way as an exception; `late`: what is thrown when the time is over. */
export async function settledValue<T>(
  run: (signal: AbortSignal) => Promise<T>,
  bounds: ToolBounds & { late: () => Error },
): Promise<T> {
  const end = await settleTool(run, bounds);
  switch (end.type) {
    case 'value':
      return end.value;
    case 'thrown':
      throw end.error;
    case 'cancelled':
      throw bounds.cancelled.reason;
    case 'timeout':
      throw bounds.late();
  }
}

async function settle<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { expiry, bounds }: { expiry: AbortController; bounds: ToolBounds },
): Promise<SettledTool<T>> {
  const { signal } = expiry;
  try {
    return { type: 'value', value: await attributed(bounds.name, () => run(signal)) };
  } catch (error) {
    // What a tool throws because it was broken off says nothing about what it had done.
    if (signal.aborted) return brokenOff(bounds.cancelled);
    if (error instanceof StrayError) expiry.abort(error);
    return { type: 'thrown', error };
  }
}

function brokenOff(cancelled: AbortSignal): SettledTool<never> {
  return { type: cancelled.aborted ? 'cancelled' : 'timeout' };
}
