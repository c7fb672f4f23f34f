import type { CliContext } from '../context.js';
import { createHosting, type Hosting } from './hosting.js';
import { catchInterrupt } from '../interrupt.js';
import type { OpenedRun } from '../open-run.js';
import { tryAgain } from './retry-blocked.js';

/** What following a run needs of whoever works on it. */
export interface Hosted {
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Resolves when somebody works on the queue, this process where nobody else does. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
}

/** Sees to it, for as long as `work` takes, that somebody works on a queue. */
export async function hosted<T>(
  context: CliContext,
  taskQueue: string,
  work: (host: Hosted) => Promise<T>,
): Promise<T> {
  const interrupt = catchInterrupt();
  const hosting = createHosting(context, taskQueue);
  const ready = hosting.ensure();
  ready.catch(() => undefined);
  try {
    return await work({ taskQueue, hosting, ready, interrupt });
  } finally {
    await hosting.stop();
  }
}

/**
 * Waits until somebody works on a run that stands; a blocked one is told to try again where this
 * process brought the worker. @returns the last event before that, 0 where nothing was to be tried
 */
export async function broughtTo(opened: OpenedRun, { hosting, ready }: Hosted): Promise<number> {
  await ready;
  const isRetried = hosting.isHosting && (await tryAgain(opened));
  return isRetried ? opened.run.view.lastEvent : 0;
}
