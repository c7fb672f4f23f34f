import { storedId } from '../../client/run-ids.js';
import { NoRunError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { describeRun } from '../../history/read-run.js';
import type { CliContext } from '../context.js';
import { nextCommandAbout } from '../reports/next-command.js';

/** Where a schedule sends its messages. */
export interface ScheduleTarget {
  /** The schedule. */
  readonly id: string;
  /** The run that gets its messages. */
  readonly to: string;
  /** The agent that a firing starts when the run does not exist; null: it starts nothing. */
  readonly agent: string | null;
}

/**
 * Returns what becomes of the messages of a schedule if their run is not open now, as a sentence that
 * begins in lower case; null if it is open.
 */
export async function closedTarget(
  context: CliContext,
  { id, to, agent }: ScheduleTarget,
): Promise<string | null> {
  const client = await context.client();
  const run = await storedId(client, to);
  const found = await describeRun(client, run).catch((error: unknown) => {
    if (error instanceof NoRunError) return null;
    throw error;
  });
  if (found?.status.name === 'RUNNING') return null;
  const shown = `"${visible(to)}"`;
  if (found === null) {
    const starts =
      agent === null
        ? 'each message fails until one is started'
        : `the first message starts it, with agent "${visible(agent)}"`;
    return `there is no run ${shown} now; ${starts}.`;
  }
  const other = nextCommandAbout(context, ['schedule update', id, '--to', 'ID']);
  return `run ${shown} has ended and takes no messages, so each one fails. Send to another id with: ${other}`;
}
