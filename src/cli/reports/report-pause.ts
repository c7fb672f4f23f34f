import type { FollowedRun } from '../../history/follow-run.js';
import { waitingFor } from '../../history/waiting-for.js';
import { nextTarget } from '../../history/follow-target.js';
import { needsPerson } from '../../core/blocked.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { nextCommandFor } from './next-command.js';

/** A run that continues to live after the command ends. */
export interface LeftRun {
  readonly id: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly last: FollowedRun | null;
  /** Whether the worker was in this process. Then the run makes no progress from now on. */
  readonly wasHosting: boolean;
}

/** Reports a run that waits. The reason has been shown before. */
export async function reportWaiting(context: CliContext, run: LeftRun): Promise<ExitCode> {
  context.note(`The run stays alive and waits. ${await continueText(context, run)}`);
  writeJson(context, run, null);
  return run.last !== null && run.last.view.blocked.size > 0 ? EXIT.blocked : EXIT.waiting;
}

async function continueText(context: CliContext, run: LeftRun): Promise<string> {
  const { id, last, wasHosting } = run;
  const blocks = [...(last?.view.blocked.values() ?? [])];
  if (blocks.length === 0) {
    return `It is paused. Resume it with: ${await nextCommandFor(context, run, ['resume', id])}`;
  }
  const isUndecided = blocks.some(({ reason }) => needsPerson(reason));
  if (!isUndecided) {
    const next = await nextCommandFor(context, run, [wasHosting ? 'attach' : 'resume', id]);
    return `After a fix, run: ${next}`;
  }
  if (!wasHosting) return 'A worker elsewhere continues it after your decision.';
  return `Its worker was in this process; start one first with: ${await nextCommandFor(context, run, ['worker'])}`;
}

/** Reports how to continue an open run whose turn has ended. */
export async function reportOpen(context: CliContext, run: LeftRun): Promise<void> {
  const { id, last, wasHosting } = run;
  const next = last && nextTarget(last.view);
  if (next === null) {
    for (const line of await openLines(context, run)) context.note(line);
    return;
  }
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const what = next === 'end' ? 'is ending' : `continues with turn ${next.turn}`;
  const noWorker = wasHosting ? ', but no worker is running now' : '';
  context.note(`The run ${what}${noWorker}. Follow it with: ${follow}`);
}

/** Returns the commands that send an open run a message and that end it. */
export async function openLines(
  context: CliContext,
  run: Pick<LeftRun, 'id' | 'taskQueue'>,
): Promise<readonly string[]> {
  const send = await nextCommandFor(context, run, ['send', run.id, 'MESSAGE']);
  const close = await nextCommandFor(context, run, ['close', run.id]);
  return [`Send it the next message with: ${send}`, `End it with: ${close}`];
}

/** Reports that the command was interrupted, which does not end the run. */
export async function reportInterrupted(context: CliContext, run: LeftRun): Promise<ExitCode> {
  const next = await nextCommandFor(context, run, ['attach', run.id]);
  context.note(
    run.wasHosting
      ? `Interrupted: run ${run.id} makes no progress without a worker; nothing is lost. Continue with: ${next}`
      : `Interrupted: run ${run.id} continues on a worker elsewhere. Follow it with: ${next}`,
  );
  writeJson(context, run, 'interrupted');
  return EXIT.interrupted;
}

/** Writes the `--json` line. `reason` applies if the run itself has none. */
function writeJson(context: CliContext, run: LeftRun, reason: string | null): void {
  if (!context.options.json) return;
  const { id, runId, last } = run;
  const [blocked] = last?.view.blocked.values() ?? [];
  const paused = last !== null && waitingFor(last.view)?.type === 'paused';
  const status = blocked !== undefined ? 'blocked' : paused ? 'paused' : 'working';
  context.out(JSON.stringify({ id, runId, status, reason: blocked?.reason ?? reason }));
}
