import { setMaxListeners } from 'node:events';
import type { DeltaBatch } from './attempts.js';
import type { LiveHub } from './hub.js';

/**
 * A source of live deltas of a run, such as this worker's hub. Sends batches until the signal
 * aborts.
 */
export type LiveSource = (
  run: { readonly id: string; readonly taskQueue: string; readonly namespace: string },
  on: {
    readonly batch: (batch: DeltaBatch) => void;
    /** Called with the reason and the fix, if no deltas of the run can arrive. */
    readonly unreachable: (why: string) => void;
    readonly signal: AbortSignal;
  },
) => void;

/**
 * Milliseconds for which workers are still read after a call: most often the next call follows, and
 * its first words must not wait for a connection. An idle run costs no connection.
 */
const LINGER_MS = 5_000;

/** Reads the sources of a run while its calls may have deltas. */
interface SourceReading {
  /** Records whether a call may have deltas. */
  update(hasOpenCalls: boolean): void;
  stop(): void;
}

export function createSourceReading(start: (signal: AbortSignal) => void): SourceReading {
  let reading: AbortController | null = null;
  let linger: NodeJS.Timeout | undefined;
  const stop = (): void => {
    clearTimeout(linger);
    linger = undefined;
    reading?.abort();
    reading = null;
  };
  return {
    update(hasOpenCalls) {
      if (!hasOpenCalls) {
        if (reading !== null) linger ??= setTimeout(stop, LINGER_MS);
        return;
      }
      clearTimeout(linger);
      linger = undefined;
      if (reading !== null) return;
      reading = new AbortController();
      // There is one listener per worker.
      setMaxListeners(0, reading.signal);
      start(reading.signal);
    },
    stop,
  };
}

/** The source of the deltas in a hub of this process. */
export function hubSource(hub: LiveHub) {
  return (
    { id }: { readonly id: string },
    on: { readonly batch: (batch: DeltaBatch) => void; readonly signal: AbortSignal },
  ): void => {
    const { batch, signal } = on;
    const watch = hub.watch(id, () => {
      for (const taken of watch.take()) batch(taken);
    });
    signal.addEventListener('abort', () => watch.close(), { once: true });
    for (const taken of watch.take()) batch(taken);
  };
}
