import { WorkflowNotFoundError } from '@temporalio/client';
import { endOfRun } from '../../client/end-of-run.js';
import { followRun, type FollowedRun } from '../../client/follow.js';
import { isWorked } from '../../client/probe-worker.js';
import { visible } from '../../core/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { openLivingRun, startLines } from '../decision.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { adviceFor, type OpenedRun } from '../open-run.js';
import { reportEnd } from '../report-end.js';

export interface CancelOptions {
  readonly id: string;
  /** `--no-wait` makes it false. */
  readonly wait: boolean;
}

const END_WITHIN_MS = 10_000;

/** `cancel ID`: asks Temporal to cancel the run, and waits a moment for it to end. */
export const cancel: Command<CancelOptions> = async (context, { id, wait }) => {
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  try {
    await client.workflow.getHandle(id, run.runId).cancel();
  } catch (error) {
    // It ended between two questions: say how.
    if (error instanceof WorkflowNotFoundError) await openLivingRun(context, id);
    throw error;
  }
  if (!wait) return await left(context, opened, 'The cancel is asked for.');
  if (!(await isWorked(client, run.taskQueue))) {
    const text =
      `The cancel is asked for; it takes effect when a worker is up, and none answers on task ` +
      `queue "${visible(run.taskQueue)}". Start one with: ${await startLines(context, run)}`;
    return await left(context, opened, text);
  }
  const last = await followToEnd(opened);
  if (last === null) {
    const look = await adviceFor(context, run, ['status', id]);
    const seconds = END_WITHIN_MS / 1_000;
    const text = `The cancel is asked for; the run has not ended within ${seconds} s. See: ${look}`;
    return await left(context, opened, text);
  }
  const code = await reportEnd(context, { id, runId: last.runId, view: last.view });
  if (code === EXIT.cancelled) return EXIT.completed;
  context.say('It ended before the cancel reached it.');
  return EXIT.failed;
};

/** Null when it has not ended in time. */
async function followToEnd({ client, run }: OpenedRun): Promise<FollowedRun | null> {
  const signal = AbortSignal.timeout(END_WITHIN_MS);
  for await (const followed of followRun(client, { id: run.id, runId: run.runId, signal })) {
    if (endOfRun({ view: followed.view, terminatedWhy: '' }) !== null) return followed;
  }
  return null;
}

async function left(context: CliContext, { run }: OpenedRun, text: string): Promise<ExitCode> {
  context.say(text);
  const { id, runId } = run;
  if (context.options.json) {
    context.out(JSON.stringify({ id, runId, status: 'working', reason: 'cancel_requested' }));
  }
  return EXIT.completed;
}
