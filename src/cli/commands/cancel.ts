import { WorkflowNotFoundError } from '@temporalio/client';
import { isWorked } from '../../temporal/probe-worker.js';
import { visible } from '../../core/text/summaries.js';
import { cancelTheTurn } from '../cancel-turn.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { openLivingRun, startLines } from '../decision.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { followWithin } from '../run-view/follow-within.js';
import { adviceFor, type OpenedRun } from '../open-run.js';
import { reportEnd } from '../reports/report-end.js';

export interface CancelOptions {
  readonly id: string;
  /** Only the turn under way. */
  readonly turn?: boolean;
  /** `--no-wait` makes it false. */
  readonly wait: boolean;
}

const END_WITHIN_MS = 10_000;

/** `cancel ID`: asks Temporal to cancel the run, and waits a moment for it to end. */
export const cancel: Command<CancelOptions> = async (context, { id, turn, wait }) => {
  const opened = await openLivingRun(context, id);
  if (turn) return await cancelTheTurn(context, opened, { wait });
  const { client, run } = opened;
  try {
    await client.workflow.getHandle(id).cancel();
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
  const arrival = await followWithin(opened, 'end', { ms: END_WITHIN_MS });
  if (arrival === null) {
    const look = await adviceFor(context, run, ['status', id]);
    const seconds = END_WITHIN_MS / 1_000;
    const text = `The cancel is asked for; the run has not ended within ${seconds} s. See: ${look}`;
    return await left(context, opened, text);
  }
  const code = await reportEnd(context, { id, ...arrival.last });
  if (code === EXIT.cancelled) return EXIT.completed;
  context.say('It ended before the cancel reached it.');
  return EXIT.failed;
};

async function left(context: CliContext, { run }: OpenedRun, text: string): Promise<ExitCode> {
  context.say(text);
  const { id, runId } = run;
  if (context.options.json) {
    context.out(JSON.stringify({ id, runId, status: 'working', reason: 'cancel_requested' }));
  }
  return EXIT.completed;
}
