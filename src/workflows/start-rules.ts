import { workflowInfo } from '@temporalio/workflow';
import type { RunInput } from '../core/input/input.js';

/**
 * Returns why this run may not begin as it was started, or null. A cron schedule or a retry policy
 * makes the server start the workflow again with its starter's arguments, so the run could not tell
 * them from its own state.
 */
export function startProblem(): string | null {
  const { cronSchedule, retryPolicy } = workflowInfo();
  if (cronSchedule) {
    return `cronSchedule: expected none, got ${JSON.stringify(cronSchedule)}; use a Temporal schedule that starts the agent`;
  }
  if (retryPolicy === undefined) return null;
  return 'retryPolicy: expected none; a run retries by itself, and to start it again at times use a Temporal schedule';
}

/** Returns why what a calling workflow sets is refused, or null: a run without a caller has none. */
export function calledProblem({ called }: RunInput): string | null {
  if (called === undefined || workflowInfo().parent !== undefined) return null;
  return 'called: expected a calling workflow; leave it out';
}
