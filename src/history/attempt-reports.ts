import type { AttemptReport } from '../core/report.js';
import type { HistoryEvent } from './decode-event.js';
import { reportsOf, type PendingWork } from './pending-work.js';

const KEPT = 10;

/** The newest failed attempts of a run's model calls, at most ten, newest last. */
export function failedAttempts(
  facts: readonly HistoryEvent[],
  { activities }: PendingWork,
): readonly AttemptReport[] {
  const recorded = facts.flatMap((fact) => {
    if (fact.type === 'completed') return reportsOf(fact.result);
    return fact.type === 'failed' ? fact.failure.details.flatMap(reportsOf) : [];
  });
  const pending = [...activities.values()].flatMap(({ reports }) => reports);
  // A failing activity tells of its earlier attempts again and again.
  const each = new Map(
    [...recorded, ...pending].map((report) => [`${report.at} ${report.attempt}`, report]),
  );
  return [...each.values()].toSorted((a, b) => a.at - b.at).slice(-KEPT);
}
