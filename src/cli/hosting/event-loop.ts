import { formatDuration } from '../format/format.js';

const LOOK_MS = 1_000;
const BLOCKED_MS = 5_000;

/**
 * Says so when something has kept the process from doing anything else: while a tool computes without
 * a pause no heartbeat goes out, and the server takes the worker for dead. Gives what ends the watch.
 */
export function watchEventLoop(say: (line: string) => void): () => void {
  let seenAt = performance.now();
  const timer = setInterval(() => {
    const late = performance.now() - seenAt - LOOK_MS;
    seenAt = performance.now();
    if (late < BLOCKED_MS) return;
    say(
      `The worker could do nothing else for ${formatDuration(late)}: some tool computes without a pause. ` +
        'Calls whose heartbeat stays away are tried again elsewhere; let it await now and then, or use a worker thread.',
    );
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
