import { isLoaded } from '../../core/definition/initial-config.js';
import { nextTarget } from '../../history/follow-target.js';
import type { CliContext } from '../context.js';
import { visible } from '../../core/text/summaries.js';
import { requireWorker, workerCommands, type OpenedRun } from '../open-run.js';
import { createHosting } from './hosting.js';

/**
 * Sends a decision to a run, which needs a worker to accept it. If none is running, this process
 * hosts one briefly. That worker starts no work: a call would be interrupted when the command ends.
 * Only an idle open run gets a full worker, because the decision may end it.
 *
 * Throws within seconds if a run without a worker has not loaded its agent, which only a full
 * worker can do.
 */
export async function withWorker<T>(
  context: CliContext,
  opened: OpenedRun,
  { decision, send }: { readonly decision: string; readonly send: () => Promise<T> },
): Promise<T> {
  const { view, taskQueue } = opened.run;
  if (view.state === null || !isLoaded(view.state)) {
    await requireWorker(context, opened, decision);
    return await send();
  }
  const isIdle = nextTarget(view) === null;
  const hosting = createHosting(context, taskQueue, { activities: isIdle });
  try {
    await hosting.ensure();
    const receipt = await send();
    // A paused run makes no progress anyway until it is resumed.
    const isPaused = decision === 'pause' || (view.state.paused && decision !== 'resume');
    if (hosting.isHosting && !isIdle && !isPaused) {
      const start = await workerCommands(context, opened.run);
      context.note(
        `No worker is running on task queue "${visible(taskQueue)}": ${decision} has taken effect, but the run makes no progress until one starts. ` +
          `Start one with: ${start}`,
      );
    }
    return receipt;
  } finally {
    await hosting.stop();
  }
}
