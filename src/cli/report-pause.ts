import type { FollowedRun } from '../client/follow.js';
import type { CliContext } from './context.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { advice } from './advice.js';

/** A run that lives on while the command leaves it. */
export interface LeftRun {
  readonly id: string;
  readonly runId: string;
  readonly last: FollowedRun | null;
  /** Whether the worker was in this process: then the run stands still from now on. */
  readonly wasHosting: boolean;
}

/** The run waits for somebody; what for has been told. */
export function reportWaiting(context: CliContext, run: LeftRun): ExitCode {
  const next = advice(context, `${run.wasHosting ? 'attach' : 'resume'} ${run.id}`);
  context.say(`The run lives on and waits. When that is mended: ${next}`);
  writeJson(context, run, 'blocked');
  return EXIT.blocked;
}

/** The person has interrupted the command, not the run. */
export function reportInterrupted(context: CliContext, run: LeftRun): ExitCode {
  const next = advice(context, `attach ${run.id}`);
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
