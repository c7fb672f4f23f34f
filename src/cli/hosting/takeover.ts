import { runnableText } from '../reports/next-command.js';
import type { CliContext } from '../context.js';

/** How often a process without a worker checks that one elsewhere still polls. */
const CHECK_MS = 3_000;
/** For how long no worker polls before this process hosts one: a worker that restarts is back by then. */
const ABSENT_MS = 15_000;
/** The shortest and the longest time after an attempt in which a worker elsewhere has answered. */
const [FIRST_PAUSE_MS, MAX_PAUSE_MS] = [60_000, 30 * 60_000];

interface Watched {
  /** Returns whether a worker seems to poll. Rejects if the server does not answer. */
  readonly isPolled: () => Promise<boolean>;
  /** Returns why a worker of this process must not serve the queue; null if it may. */
  readonly lack: () => Promise<string | null>;
  /** Starts a worker in this process unless one elsewhere answers; returns whether it did. */
  readonly start: () => Promise<boolean>;
}

/**
 * Watches a worker elsewhere, and starts one in this process when it has ended and does not come back.
 * Returns a function that ends the watch.
 */
export function watchElsewhere(
  context: CliContext,
  { isPolled, lack, start }: Watched,
): () => void {
  const note = onceEach(context);
  let absentSince: number | null = null;
  let pauseMs = FIRST_PAUSE_MS;
  let pausedUntil = 0;
  let isChecking = false;
  const check = async (): Promise<void> => {
    const now = performance.now();
    if (now < pausedUntil) return;
    if (await isPolled()) {
      absentSince = null;
      return;
    }
    absentSince ??= now;
    if (now - absentSince < ABSENT_MS) return;
    const lacking = await lack();
    if (lacking !== null) {
      note(`The worker elsewhere has ended, and none starts in this process. ${lacking}`);
    } else if (await start()) {
      context.note('The worker elsewhere has ended. A worker runs in this process.');
    } else {
      // The list of pollers is wrong about it, for example since the clocks differ.
      pausedUntil = performance.now() + pauseMs;
      pauseMs = Math.min(MAX_PAUSE_MS, 2 * pauseMs);
      absentSince = null;
    }
  };
  const timer = setInterval(() => {
    if (isChecking) return;
    isChecking = true;
    check()
      .catch((error: unknown) => {
        if (absentSince === null) return;
        const why = runnableText(context, error instanceof Error ? error.message : String(error));
        note(`No worker is running, and this process could not start one: ${why}`);
      })
      .finally(() => {
        isChecking = false;
      });
  }, CHECK_MS).unref();
  return () => clearInterval(timer);
}

/** Returns a function that notes a text unless it was the last one. */
function onceEach({ note }: Pick<CliContext, 'note'>): (text: string) => void {
  let last = '';
  return (text) => {
    if (text !== last) note(text);
    last = text;
  };
}
