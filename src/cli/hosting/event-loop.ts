import { formatDuration } from '../format/format.js';

const LOOK_MS = 1_000;
const BLOCKED_MS = 5_000;

/**
 * Reports when the event loop was blocked: while a tool computes without yielding, no heartbeat is
 * sent, and the server considers the worker dead. Returns a function that ends the watch.
 */
export function watchEventLoop(note: (line: string) => void): () => void {
  let seenAt = performance.now();
  const timer = setInterval(() => {
    const late = performance.now() - seenAt - LOOK_MS;
    seenAt = performance.now();
    if (late < BLOCKED_MS) return;
    note(
      `The worker's event loop was blocked for ${formatDuration(late)}: a tool computed without yielding. ` +
        'Calls without heartbeats are retried elsewhere; let the tool await periodically, or use a worker thread.',
    );
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
