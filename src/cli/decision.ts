import { endOfRun } from '../history/end-of-run.js';
import { isWorked } from '../temporal/probe-worker.js';
import type { RunReading } from '../history/read-run.js';
import { visible } from '../core/text/summaries.js';
import type { CliContext } from './context.js';
import { adviceFor, openRun, type OpenedRun } from './open-run.js';
import { ago } from './format/format-time.js';

/** A run that lives. Throws with how it ended when it does not. */
export async function openLivingRun(context: CliContext, id: string): Promise<OpenedRun> {
  const opened = await openRun(context, id);
  const { run } = opened;
  const end = endOfRun(run);
  if (end === null) return opened;
  const { status } = end.outcome;
  const how = end.reason === status ? status : `${status} (${end.reason})`;
  const when = ago(run.view.ended?.at ?? Date.now(), Date.now());
  throw new Error(
    `run ${visible(id)} has ended: ${how}, ${when}. See: ${await adviceFor(context, run, ['status', id])}`,
  );
}

/** The run itself takes decisions, so somebody must be there to run it. Throws within seconds when nobody is. */
export async function demandWorker(
  context: CliContext,
  { client, run }: OpenedRun,
  decision: string,
): Promise<void> {
  if (await isWorked(client, run.taskQueue)) return;
  throw new Error(
    `${decision} needs a worker, and none answers on task queue "${visible(run.taskQueue)}". ` +
      `Start one with: ${await startLines(context, run)}; then type this command again.`,
  );
}

/** The two ways to bring a worker for a run. */
export async function startLines(context: CliContext, run: RunReading): Promise<string> {
  const worker = await adviceFor(context, run, ['worker']);
  return `${worker}  (or, to follow the run as well: ${await adviceFor(context, run, ['attach', run.id])})`;
}
