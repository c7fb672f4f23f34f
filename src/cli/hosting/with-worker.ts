import { nextTarget } from '../../history/follow-target.js';
import type { CliContext } from '../context.js';
import { requireWorker, type OpenedRun } from '../open-run.js';
import { createHosting } from './hosting.js';

/**
 * Sends a decision to a run, which needs a worker to accept it. For a run that waits for a message,
 * this process hosts a worker for that moment if none is running. A run with work to do would start
 * it on such a worker and be interrupted, so this throws within seconds if that run has no worker.
 */
export async function withWorker<T>(
  context: CliContext,
  opened: OpenedRun,
  { decision, send }: { readonly decision: string; readonly send: () => Promise<T> },
): Promise<T> {
  if (nextTarget(opened.run.view) !== null) {
    await requireWorker(context, opened, decision);
    return await send();
  }
  const hosting = createHosting(context, opened.run.taskQueue);
  try {
    await hosting.ensure();
    return await send();
  } finally {
    await hosting.stop();
  }
}
