import type { CliContext } from '../context.js';
import { createHosting, type Hosting } from './hosting.js';
import { catchInterrupt } from './interrupt.js';
import type { OpenedRun } from '../open-run.js';
import { resumeRun } from '../../updates/control.js';
import { osUser } from '../input/os-user.js';
import { statusQuery } from '../../workflows/messages/definitions.js';

/** The worker that serves a task queue while a command runs, in this process or elsewhere. */
export interface HostedWorker {
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Resolves when a worker serves the queue: this process hosts one if no other answers. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
}

/** Ensures that a worker serves the task queue while `work` runs. */
export async function withHostedWorker<T>(
  context: CliContext,
  taskQueue: string,
  work: (host: HostedWorker) => Promise<T>,
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
 * Waits until a worker serves the run. If this process hosts that worker, a blocked run retries at
 * once. Returns the number of the last event before the retry, or 0 if nothing was retried.
 */
export async function awaitWorker(
  opened: OpenedRun,
  { hosting, ready }: HostedWorker,
): Promise<number> {
  await ready;
  const isRetried = hosting.isHosting && (await retryBlocked(opened));
  return isRetried ? opened.run.view.lastEvent : 0;
}

/** The worker may have to replay a long history before it answers. */
const ANSWER_WITHIN_MS = 10_000;

/**
 * Makes a blocked run retry at once instead of at its next probe: the new worker may have the fix,
 * such as a key. A paused run stays paused. Returns whether the run was asked to retry.
 */
async function retryBlocked({ client, run }: OpenedRun): Promise<boolean> {
  const { blocked, state } = run.view;
  if (state?.paused) return false;
  if (blocked.size === 0) return false;
  try {
    // The previous worker may have died before the workflow recorded that it is blocked; a resume
    // that arrives before that is lost. A query is answered only after all events are processed.
    await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
      client.workflow.getHandle(run.id).query(statusQuery),
    );
    await resumeRun(client, run.id, { by: osUser() });
    return true;
  } catch {
    // The run probes on its own; until then, it stays as it was read.
    return false;
  }
}
