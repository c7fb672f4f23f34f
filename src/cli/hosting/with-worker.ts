import type { Client } from '@temporalio/client';
import { RefusedError } from '../../core/errors.js';
import { isLoaded } from '../../core/rules/limits.js';
import { visible } from '../../core/state/summaries.js';
import { nextTarget } from '../../history/follow-history.js';
import { endOfRun } from '../../history/pending-work.js';
import { readRun } from '../../history/read-run.js';
import { resumeRun } from '../../updates/decide.js';
import { statusQuery } from '../../workflows/messages/definitions.js';
import { type CliContext, CommandError } from '../context.js';
import { osUser } from '../input/option-parsers.js';
import {
  type OpenedRun,
  agentLack,
  requireNotCanceled,
  requireOpenRun,
  requireWorker,
  startHint,
} from '../open-run.js';
import { type Hosting, catchInterrupt, createHosting } from './hosting.js';
import { lackedRuns } from './lacked-runs.js';

/**
 * Sends a decision to a run, which needs a worker to accept it. If none is running, this process
 * hosts one briefly. That worker starts no work: a call would be interrupted when the command ends.
 * Only an idle open run gets a full worker, because the decision may end it.
 *
 * If the run then makes no progress until a worker starts, notes that, or calls `left` with the
 * sentence that says how to start one, for a command that says itself what happens next.
 *
 * Throws if a cancel of the run is requested, and within seconds if a run without a worker has not loaded its agent, which only a full
 * worker can do.
 */
export async function withWorker<T>(
  context: CliContext,
  opened: OpenedRun,
  {
    decision,
    send,
    left,
  }: {
    readonly decision: string;
    /** `start`: how to start a worker, if none but the one of this process is running. */
    readonly send: (start: string | null) => Promise<T>;
    readonly left?: (start: string) => void;
  },
): Promise<T> {
  await requireNotCanceled(context, opened, decision);
  const { view, taskQueue } = opened.run;
  if (view.state === null || !isLoaded(view.state)) {
    await requireWorker(context, opened, decision);
    return await send(null);
  }
  const isIdle = nextTarget(view) === null;
  const hosting = createHosting(context, taskQueue, { activities: isIdle });
  try {
    await hosting.ensure();
    const start = hosting.isHosting ? await startHint(context, opened.run) : null;
    const receipt = await send(start).catch(async (error: unknown) => {
      throw await namingEnd(context, opened, error);
    });
    // A paused run makes no progress anyway until it is resumed.
    const isPaused = decision === 'pause' || (view.state.paused && decision !== 'resume');
    const isLeft = start !== null && !isIdle && !isPaused && (await hosting.isAlone());
    if (isLeft && !(await hasEnded(opened))) {
      const note = (hint: string): void =>
        context.note(
          `No worker is running on task queue "${visible(taskQueue)}": ${decision} has taken effect, but the run makes no progress until one starts. ${hint}`,
        );
      (left ?? note)(start);
    }
    return receipt;
  } finally {
    await hosting.stop();
  }
}

/** Returns the error that says how and when a run has ended, in place of one that says only that it has. */
async function namingEnd(
  context: CliContext,
  { run }: OpenedRun,
  error: unknown,
): Promise<unknown> {
  const hasReason = RefusedError.isInstance(error) && error.reason === 'run_ended';
  if (!hasReason) return error;
  return await requireOpenRun(context, run.id).then(
    () => error,
    (ended: unknown) => (ended instanceof CommandError ? ended : error),
  );
}

/** Returns whether a run has ended with a decision that left it nothing to execute. */
async function hasEnded({ client, run: { id } }: OpenedRun): Promise<boolean> {
  await untilProcessed(client, id).catch(() => undefined);
  return endOfRun(await readRun(client, id)) !== null;
}

/** The worker that serves a task queue while a command runs, in this process or elsewhere. */
export interface HostedWorker {
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Resolves when a worker serves the queue: this process hosts one if no other answers. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
  /** Why this process hosts no worker: one of this configuration would block the run. Null if it may host. */
  readonly lack: string | null;
}

/** The run, or the agent to run, that a command hosts a worker for. */
interface HostedFor {
  readonly taskQueue: string;
  readonly agent?: string;
  /** Fail if no worker is running and this command may not host one. Default: wait for a worker. */
  readonly isNeeded?: boolean;
}

/**
 * Ensures that a worker serves the task queue while `work` runs. `agent`: that of the run. If
 * the configuration does not have it, no worker is hosted, because it would block the run.
 */
export async function withHostedWorker<T>(
  context: CliContext,
  { taskQueue, agent = '', isNeeded = false }: HostedFor,
  work: (host: HostedWorker) => Promise<T>,
): Promise<T> {
  const interrupt = catchInterrupt();
  const lack = await agentLack(context, { agent });
  const lackLater = async (): Promise<string | null> => await lackedRuns(context, taskQueue);
  const hosting = createHosting(context, taskQueue, { lack, isNeeded, lackLater });
  const ready = hosting.ensure();
  ready.catch(() => undefined);
  try {
    return await work({ taskQueue, hosting, ready, interrupt, lack });
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
    await untilProcessed(client, run.id);
    await resumeRun(client, run.id, { by: osUser() });
    return true;
  } catch {
    // The run probes on its own; until then, it stays as it was read.
    return false;
  }
}

/**
 * Waits until a run has written the status that `list` reads, if its worker ends with this command: the
 * command reads an event as soon as the server has it, before the workflow does. Gives up after some
 * seconds; the next worker then writes the status.
 */
export async function untilPublished(
  context: CliContext,
  { id, hosting }: { readonly id: string; readonly hosting: Hosting },
): Promise<void> {
  if (!hosting.isHosting) return;
  await untilProcessed(await context.client(), id).catch(() => undefined);
}

/** Waits until the workflow has processed all events: a query is answered only then. */
async function untilProcessed(client: Client, id: string): Promise<void> {
  await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
    client.workflow.getHandle(id).query(statusQuery),
  );
}
