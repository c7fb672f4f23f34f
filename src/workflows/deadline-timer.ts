import { CancellationScope, sleep } from '@temporalio/workflow';
import { nextDeadline } from '../core/limits.js';
import { MAX_DURABLE_MS } from '../core/text/duration.js';
import { recordNow, type RunContext } from './run-context.js';

/**
 * Starts the timer for the nearest deadline of the turn or the run, and replaces the previous
 * timer.
 */
export function startDeadlineTimer(run: RunContext): void {
  run.deadlineTimer?.cancel();
  run.deadlineTimer = null;
  const deadline = nextDeadline(run.state);
  if (deadline === null) return;
  const leftMs = deadline.at - Date.now();
  // The server refuses a longer timer, and no run lasts that long.
  if (!(leftMs <= MAX_DURABLE_MS)) return;
  const scope = new CancellationScope();
  run.deadlineTimer = scope;
  scope
    .run(async () => {
      await sleep(Math.max(1, leftMs));
      recordNow(run, { type: 'clock' });
    })
    .catch(() => undefined);
}
