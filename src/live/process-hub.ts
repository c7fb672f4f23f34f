import type { DeltaBatch } from './attempts.js';
import { createLiveHub, type LiveHub } from './hub.js';

/**
 * Holds the replies in progress of all workers of this process, as long as a client of this process
 * reads the run. Runs of different servers do not mix: the history decides which calls count.
 */
export const processHub: LiveHub = createLiveHub();

/** The queues that workers of this process poll, with the number of workers. */
const polled = new Map<string, number>();

interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

const keyOf = ({ namespace, taskQueue }: Queue): string => JSON.stringify([namespace, taskQueue]);

/** Records that a worker of this process polls a queue. Returns a function that ends it. */
export function pollsHere(queue: Queue): () => void {
  const key = keyOf(queue);
  polled.set(key, (polled.get(key) ?? 0) + 1);
  return () => {
    const left = (polled.get(key) ?? 1) - 1;
    if (left > 0) polled.set(key, left);
    else polled.delete(key);
  };
}

/** Whether a worker of this process polls the queue. */
export function isPolledHere(queue: Queue): boolean {
  return polled.has(keyOf(queue));
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
