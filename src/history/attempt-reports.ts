import type { AttemptReport } from '../core/report.js';
import type { HistoryEvent } from './history-event.js';
import { reportsOf, type PendingWork } from './pending-work.js';

const KEPT = 10;

/** Returns the newest failed attempts of a run's model calls, at most ten, newest last. */
export function failedAttempts(
  events: readonly HistoryEvent[],
  { activities }: PendingWork,
): readonly AttemptReport[] {
  const recorded = events.flatMap((event) => {
    if (event.type === 'completed') return reportsOf(event.result);
    return event.type === 'failed' ? event.failure.details.flatMap(reportsOf) : [];
  });
  const pending = [...activities.values()].flatMap(({ reports }) => reports);
  // An activity that keeps failing repeats the reports of its earlier attempts.
  const unique = new Map(
    [...recorded, ...pending].map((report) => [`${report.at} ${report.attempt}`, report]),
  );
  return [...unique.values()].toSorted((a, b) => a.at - b.at).slice(-KEPT);
}
