import { WorkflowNotFoundError } from '@temporalio/client';
import { hasLiveWorker } from '../../temporal/probe-worker.js';
import { visible } from '../../core/text/summaries.js';
import { cancelTurn } from '../../updates/control.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { deciderName } from '../input/os-user.js';
import { requireOpenRun, requireWorker, workerCommands, type OpenedRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { reportEnd, reportTurn } from '../reports/report-end.js';
import { openLines } from '../reports/report-pause.js';
import { followWithin } from '../run-view/follow-within.js';

export interface CancelOptions {
  readonly id: string;
  /** Cancel only the current turn. */
  readonly turn?: boolean;
  readonly detach?: boolean;
  readonly by?: string;
}

const END_WITHIN_MS = 10_000;
const NOT_ENDED = `has not ended within ${END_WITHIN_MS / 1_000} s`;

/** `cancel ID`: cancels the run, or only its current turn, and waits up to 10 s for the end. */
export const cancel: Command<CancelOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run; what it has done so far is kept'),
      'turn',
      'detach',
      'by',
    ),
  async run(context, { id, turn, detach = false, by }) {
    const actor = deciderName(by);
    if (by !== undefined && !turn) {
      throw new UsageError(
        '--by: expected --turn, got none; the server does not record who cancels a whole run, so omit --by',
      );
    }
    const opened = await requireOpenRun(context, id);
    return turn
      ? await cancelCurrentTurn(context, opened, { detach, by: actor })
      : await cancelRun(context, opened, { detach });
  },
};

async function cancelRun(
  context: CliContext,
  opened: OpenedRun,
  { detach }: { readonly detach: boolean },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id } = run;
  try {
    await client.workflow.getHandle(id).cancel();
  } catch (error) {
    // The run ended after it was read; this throws an error that reports how.
    if (error instanceof WorkflowNotFoundError) await requireOpenRun(context, id);
    throw error;
  }
  if (detach) return reportRequested(context, opened, 'Cancellation requested.');
  if (!(await hasLiveWorker(client, run.taskQueue))) {
    const text =
      'Cancellation requested. It takes effect when a worker is running, and none answers on task ' +
      `queue "${visible(run.taskQueue)}". Start one with: ${await workerCommands(context, run)}`;
    return reportRequested(context, opened, text);
  }
  const arrival = await followWithin(opened, 'end', { ms: END_WITHIN_MS });
  if (arrival === null) {
    const see = await nextCommandFor(context, run, ['status', id]);
    const text = `Cancellation requested; the run ${NOT_ENDED}. See: ${see}`;
    return reportRequested(context, opened, text);
  }
  return exitCode(context, await reportEnd(context, { id, ...arrival.last }));
}

function reportRequested(context: CliContext, { run }: OpenedRun, text: string): ExitCode {
  context.note(text);
  const { id, runId } = run;
  if (context.options.json) {
    context.out(JSON.stringify({ id, runId, status: 'working', reason: 'cancel_requested' }));
  }
  return EXIT.completed;
}

async function cancelCurrentTurn(
  context: CliContext,
  opened: OpenedRun,
  { detach, by }: { readonly detach: boolean; readonly by: string },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id, runId } = run;
  await requireWorker(context, opened, 'cancel --turn');
  const turn = await cancelTurn(client, id, { by });
  const isOpen = run.view.input?.open === true;
  const until = isOpen ? { turn } : 'end';
  const arrival = detach ? null : await followWithin(opened, until, { ms: END_WITHIN_MS });
  if (arrival === null) {
    const late = detach ? '' : ` It ${NOT_ENDED}.`;
    const see = await nextCommandFor(context, run, ['status', id]);
    context.note(
      `Cancellation of turn ${turn} of run ${visible(id)} requested.${late} See: ${see}`,
    );
    const line = { id, runId, turn, status: 'working', reason: 'cancel_requested' };
    if (context.options.json) context.out(JSON.stringify(line));
    return EXIT.completed;
  }
  const { last, reached } = arrival;
  const ended = { id, runId: last.runId, view: last.view };
  const code =
    reached.type === 'turn-ended'
      ? await reportTurn(context, { ...reached.ended, ...ended })
      : await reportEnd(context, ended);
  if (isOpen) for (const line of await openLines(context, run)) context.note(line);
  return exitCode(context, code);
}

/** Returns the exit code. A cancellation that arrives too late counts as a failure. */
function exitCode(context: CliContext, code: ExitCode): ExitCode {
  if (code === EXIT.cancelled) return EXIT.completed;
  context.note('It ended before the cancellation arrived.');
  return EXIT.failed;
}
