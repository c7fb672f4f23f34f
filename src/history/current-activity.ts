import { formatDuration } from '../core/text/duration.js';
import { callSummary, visible } from '../core/text/summaries.js';
import type { PendingActivity, PendingWork } from './pending-work.js';
import type { InFlight, Projection } from './projection.js';

/** Milliseconds after which an unstarted task is shown as waiting for a worker. */
const TAKEN_WITHIN_MS = 1_000;

/**
 * Returns what the run is doing at `now`, such as `read_file src/a.ts (3 s, attempt 2)`; null for
 * nothing.
 */
export function currentActivity(
  { view, work }: { readonly view: Projection; readonly work: PendingWork },
  now: number,
): string | null {
  if (view.ended !== null) return null;
  const model = view.state?.config.definition.model ?? '';
  const each = [...view.inFlight.values()].map(
    (one) => `${nameOf(one, model)} (${progressOf(one, work.activities.get(one.activityId), now)})`,
  );
  if (each.length > 0) return each.join(', ');
  const waitsMs = now - (work.workflowDueAt ?? now);
  return waitsMs < TAKEN_WITHIN_MS ? null : `waits for a worker (${seconds(waitsMs)})`;
}

function nameOf({ activity, call, summary }: InFlight, model: string): string {
  if (activity === 'callModel') return visible(`${model}, ${summary}`);
  if (summary !== '') return visible(summary);
  return call === null ? visible(activity) : callSummary(call);
}

function progressOf(one: InFlight, pending: PendingActivity | undefined, now: number): string {
  if (pending === undefined) return seconds(now - one.at);
  const { attempt, startedAt, dueAt, paused } = pending;
  const again = attempt > 1 ? [`attempt ${attempt}`] : [];
  if (startedAt !== null) return [seconds(now - startedAt), ...again].join(', ');
  if (paused) return ['paused', ...again].join(', ');
  if (dueAt > now) return `attempt ${attempt} in ${seconds(dueAt - now)}`;
  if (now - dueAt < TAKEN_WITHIN_MS) return [seconds(now - dueAt), ...again].join(', ');
  return ['waits for a worker', seconds(now - dueAt), ...again].join(', ');
}

function seconds(ms: number): string {
  return formatDuration(ms, { as: 'rounded' });
}
