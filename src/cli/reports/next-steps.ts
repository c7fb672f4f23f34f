import type { RunReading } from '../../history/read-run.js';
import { nextTarget } from '../../history/follow-target.js';
import type { RunStatus } from '../../core/status.js';
import type { CliContext } from '../context.js';
import { nextCommandFor } from './next-command.js';
import { runCommands } from '../../core/requests/commands.js';
import { columns } from '../format/table.js';

export interface StatusReading {
  readonly run: RunReading;
  readonly status: RunStatus;
  /** Whether a worker seems to be running. */
  readonly hasWorker: boolean;
}

/**
 * Returns the command lines that a person can run now, each with its purpose. The commands for
 * decisions are shown elsewhere. `now`: Unix time in ms.
 */
export async function nextSteps(
  context: CliContext,
  { run, status, hasWorker }: StatusReading,
  now: number,
): Promise<readonly string[]> {
  const { view } = run;
  const facts = {
    ...status,
    isBlocked: view.blocked.size > 0,
    isPaused: view.state?.paused === true,
    isIdle: nextTarget(view) === null,
    hasWorker,
  };
  const rows = runCommands(facts, now).map(async ({ words, purpose }) => [
    await nextCommandFor(context, run, words),
    purpose,
  ]);
  return columns(await Promise.all(rows));
}
