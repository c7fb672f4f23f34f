import type { RunEvent } from '../events.js';
import { parseProblem } from '../failure.js';
import type { FactOf } from '../facts.js';
import type { AttemptReport } from '../report.js';
import { WORK } from '../work/work.js';

/** The turn is remembered, or a cancel of the run has kept it from that. */
export function remembered(reports: readonly AttemptReport[] = []): readonly RunEvent[] {
  return [
    { type: 'work-ended', name: WORK.remember },
    { type: 'turn-remembered', reports },
  ];
}

/** The outcome stands, whatever becomes of the memory, so a failure is only reported. */
export function notRemembered({ failure, at }: FactOf<'failed'>): readonly RunEvent[] {
  const { message: cause, details } = failure;
  const lost = { type: 'remember_failed', attempt: 1, waitMs: 0, at, message: cause.slice(0, 300) };
  return remembered(parseProblem(details)?.reports ?? [lost]);
}
