import type { FollowedRun } from '../../history/follow-run.js';
import { waitingFor } from '../../history/waiting-for.js';
import { nextTarget } from '../../history/follow-target.js';
import { needsPerson } from '../../core/blocked.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { nextCommandFor } from '../open-run.js';

/** A run that lives on while the command leaves it. */
export interface LeftRun {
  readonly id: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly last: FollowedRun | null;
  /** Whether the worker was in this process: then the run stands still from now on. */
  readonly wasHosting: boolean;
}

/** The run waits for somebody; what for has been told. */
export async function reportWaiting(context: CliContext, run: LeftRun): Promise<ExitCode> {
  context.note(`The run lives on and waits. ${await howToGoOn(context, run)}`);
  writeJson(context, run, null);
  return run.last !== null && run.last.view.blocked.size > 0 ? EXIT.blocked : EXIT.waiting;
}

async function howToGoOn(context: CliContext, run: LeftRun): Promise<string> {
  const { id, last, wasHosting } = run;
  const blocks = [...(last?.view.blocked.values() ?? [])];
  if (blocks.length === 0) {
    return `It is paused. Let it go on with: ${await nextCommandFor(context, run, ['resume', id])}`;
  }
  const isUndecided = blocks.some(({ reason }) => needsPerson(reason));
  if (!isUndecided) {
    const next = await nextCommandFor(context, run, [wasHosting ? 'attach' : 'resume', id]);
    return `When that is mended: ${next}`;
  }
  if (!wasHosting) return 'A worker elsewhere goes on with it as soon as you have said it.';
  return `Its worker was in this process, so first start one with: ${await nextCommandFor(context, run, ['worker'])}`;
}

/** A turn of an open run is over: how to go on with it. */
export async function reportOpen(context: CliContext, run: LeftRun): Promise<void> {
  const { id, last, wasHosting } = run;
  const next = last && nextTarget(last.view);
  if (next === null) {
    for (const line of await openLines(context, run)) context.note(line);
    return;
  }
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const what = next === 'end' ? 'comes to its end' : `goes on with turn ${next.turn}`;
  const nobody = wasHosting ? ', and nobody works on it now' : '';
  context.note(`The run ${what}${nobody}. Follow it with: ${follow}`);
}

/** What can be said to an open run. */
export async function openLines(
  context: CliContext,
  run: Pick<LeftRun, 'id' | 'taskQueue'>,
): Promise<readonly string[]> {
  const send = await nextCommandFor(context, run, ['send', run.id, 'MESSAGE']);
  const close = await nextCommandFor(context, run, ['close', run.id]);
  return [`Send it the next message with: ${send}`, `End it with: ${close}`];
}

/** The person has interrupted the command, not the run. */
export async function reportInterrupted(context: CliContext, run: LeftRun): Promise<ExitCode> {
  const next = await nextCommandFor(context, run, ['attach', run.id]);
  context.note(
    run.wasHosting
      ? `Interrupted: run ${run.id} stands still, nothing is lost. Go on with: ${next}`
      : `Left: run ${run.id} goes on, a worker elsewhere does the work. Come back with: ${next}`,
  );
  writeJson(context, run, 'interrupted');
  return EXIT.interrupted;
}

/** `reason`: where the run itself gives none. */
function writeJson(context: CliContext, run: LeftRun, reason: string | null): void {
  if (!context.options.json) return;
  const { id, runId, last } = run;
  const [blocked] = last?.view.blocked.values() ?? [];
  const paused = last !== null && waitingFor(last.view)?.type === 'paused';
  const status = blocked !== undefined ? 'blocked' : paused ? 'paused' : 'working';
  context.out(JSON.stringify({ id, runId, status, reason: blocked?.reason ?? reason }));
}
