import { nextTarget } from '../../history/follow-target.js';
import type { CliContext } from '../context.js';
import { requireWorker } from '../decision.js';
import { createHosting } from './hosting.js';
import type { OpenedRun } from '../open-run.js';

/**
 * Says something to a run, which only the run itself can hear. To one that waits for a message a
 * worker is brought where there is none, for that moment. One that has work to do would begin it
 * then and be left in the middle, so it has to have a worker: throws within seconds where it has not.
 */
export async function withWorker<T>(
  context: CliContext,
  opened: OpenedRun,
  { decision, say }: { readonly decision: string; readonly say: () => Promise<T> },
): Promise<T> {
  if (nextTarget(opened.run.view) !== null) {
    await requireWorker(context, opened, decision);
    return await say();
  }
  const hosting = createHosting(context, opened.run.taskQueue);
  try {
    await hosting.ensure();
    return await say();
  } finally {
    await hosting.stop();
  }
}
