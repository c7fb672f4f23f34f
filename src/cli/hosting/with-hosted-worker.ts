import type { CliContext } from '../context.js';
import { createHosting, type Hosting } from './hosting.js';
import { catchInterrupt } from './interrupt.js';
import type { OpenedRun } from '../open-run.js';
import { resumeRun } from '../../updates/resolve.js';
import { osUser } from '../input/os-user.js';
import { needsPerson } from '../../core/blocked.js';
import { statusQuery } from '../../workflows/messages.js';

/** What following a run needs of whoever works on it. */
export interface HostedWorker {
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Resolves when somebody works on the queue, this process where nobody else does. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
}

/** Sees to it, for as long as `work` takes, that somebody works on a queue. */
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
 * Waits until somebody works on a run that stands; a blocked one is told to try again where this
 * process brought the worker. @returns the last event before that, 0 where nothing was to be tried
 */
export async function awaitWorker(opened: OpenedRun, { hosting, ready }: HostedWorker): Promise<number> {
  await ready;
  const isRetried = hosting.isHosting && (await retryBlocked(opened));
  return isRetried ? opened.run.view.lastEvent : 0;
}

/** A worker is there, but may have to replay a long history. */
const HEARD_WITHIN_MS = 10_000;

/**
 * A blocked run probes in its own time. Whoever comes with a worker of theirs may have brought the
 * mend along, a key for instance: the run shall see at once. One that somebody has paused stays as
 * it is. Gives whether it was told so.
 */
async function retryBlocked({ client, run }: OpenedRun): Promise<boolean> {
  const { blocked, state } = run.view;
  if (state?.paused) return false;
  const isMendable = [...blocked.values()].some(({ reason }) => !needsPerson(reason));
  if (!isMendable) return false;
  try {
    // The worker before this one may have died before the run itself knew that it is blocked; what
    // is said to it then is lost. A query is answered when it has heard everything.
    await client.withDeadline(Date.now() + HEARD_WITHIN_MS, () =>
      client.workflow.getHandle(run.id).query(statusQuery),
    );
    await resumeRun(client, run.id, { by: osUser() });
    return true;
  } catch {
    // It probes by itself; until then the run stands as it was read.
    return false;
  }
}
