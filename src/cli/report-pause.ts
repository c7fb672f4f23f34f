import type { FollowedRun } from '../client/follow.js';
import type { CliContext } from './context.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { adviceFor } from './open-run.js';

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
  context.say(`The run lives on and waits. ${await howToGoOn(context, run)}`);
  writeJson(context, run, 'blocked');
  return EXIT.blocked;
}

async function howToGoOn(context: CliContext, run: LeftRun): Promise<string> {
  const { id, last, wasHosting } = run;
  const blocks = [...(last?.view.blocked.values() ?? [])];
  const isUndecided = blocks.some(({ reason }) => reason === 'outcome_unknown');
  if (!isUndecided) {
    const next = await adviceFor(context, run, [wasHosting ? 'attach' : 'resume', id]);
    return `When that is mended: ${next}`;
  }
  if (!wasHosting) return 'A worker elsewhere goes on with it as soon as you have said it.';
  return `Its worker was in this process, so first start one with: ${await adviceFor(context, run, ['worker'])}`;
}

/** The person has interrupted the command, not the run. */
export async function reportInterrupted(context: CliContext, run: LeftRun): Promise<ExitCode> {
  const next = await adviceFor(context, run, ['attach', run.id]);
  context.say(
    run.wasHosting
      ? `Interrupted: run ${run.id} stands still, nothing is lost. Go on with: ${next}`
      : `Left: run ${run.id} goes on, a worker elsewhere does the work. Come back with: ${next}`,
  );
  writeJson(context, run, 'interrupted');
  return EXIT.interrupted;
}

function writeJson(context: CliContext, run: LeftRun, otherwise: string): void {
  if (!context.options.json) return;
  const { id, runId, last } = run;
  const [blocked] = last?.view.blocked.values() ?? [];
  const status = blocked === undefined ? 'working' : 'blocked';
  const reason = blocked?.reason ?? otherwise;
  context.out(JSON.stringify({ id, runId, status, reason }));
}
