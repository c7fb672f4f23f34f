import { WorkflowNotFoundError } from '@temporalio/client';
import { hasLiveWorker } from '../../temporal/probe-worker.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { openLivingRun, workerCommands, requireWorker } from '../decision.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { followWithin } from '../run-view/follow-within.js';
import { nextCommandFor, type OpenedRun } from '../open-run.js';
import { reportEnd, reportTurn } from '../reports/report-end.js';
import { cancelTurn } from '../../updates/control.js';
import { osUser } from '../input/os-user.js';
import { openLines } from '../reports/report-pause.js';

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
  if (!(await hasLiveWorker(client, run.taskQueue))) {
    const text =
      `The cancel is asked for; it takes effect when a worker is up, and none answers on task ` +
      `queue "${visible(run.taskQueue)}". Start one with: ${await workerCommands(context, run)}`;
    return await left(context, opened, text);
  }
  const arrival = await followWithin(opened, 'end', { ms: END_WITHIN_MS });
  if (arrival === null) {
    const look = await nextCommandFor(context, run, ['status', id]);
    const seconds = END_WITHIN_MS / 1_000;
    const text = `The cancel is asked for; the run has not ended within ${seconds} s. See: ${look}`;
    return await left(context, opened, text);
  }
  const code = await reportEnd(context, { id, ...arrival.last });
  if (code === EXIT.cancelled) return EXIT.completed;
  context.note('It ended before the cancel reached it.');
  return EXIT.failed;
};

async function left(context: CliContext, { run }: OpenedRun, text: string): Promise<ExitCode> {
  context.note(text);
  const { id, runId } = run;
  if (context.options.json) {
    context.out(JSON.stringify({ id, runId, status: 'working', reason: 'cancel_requested' }));
  }
  return EXIT.completed;
}

const END_WITHIN_MS = 10_000;

/** Ends the turn under way, and waits a moment for it to end. An open run lives on. */
async function cancelTheTurn(
  context: CliContext,
  opened: OpenedRun,
  { wait }: { readonly wait: boolean },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id, runId } = run;
  await requireWorker(context, opened, 'cancel --turn');
  const turn = await cancelTurn(client, id, { by: osUser() });
  const isOpen = run.view.input?.open === true;
  const until = isOpen ? { turn } : 'end';
  const arrival = wait ? await followWithin(opened, until, { ms: END_WITHIN_MS }) : null;
  if (arrival === null) {
    const late = wait ? ` It has not ended within ${END_WITHIN_MS / 1_000} s.` : '';
    const see = await nextCommandFor(context, run, ['status', id]);
    context.note(`The cancel of turn ${turn} of ${visible(id)} is asked for.${late} See: ${see}`);
    const told = { id, runId, turn, status: 'working', reason: 'cancel_requested' };
    if (context.options.json) context.out(JSON.stringify(told));
    return EXIT.completed;
  }
  const { last, reached } = arrival;
  const over = { id, runId: last.runId, view: last.view };
  const code =
    reached.type === 'turn-ended'
      ? await reportTurn(context, { ...reached.ended, ...over })
      : await reportEnd(context, over);
  if (isOpen) for (const line of await openLines(context, run)) context.note(line);
  if (code === EXIT.cancelled) return EXIT.completed;
  context.note('It ended before the cancel reached it.');
  return EXIT.failed;
}
