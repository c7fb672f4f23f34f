import { workflowInfo } from '@temporalio/workflow';
import { NEVER_FULL } from '../core/next-action.js';
import type { SegmentFacts } from '../core/segments/carry.js';
import type { RunContext } from './run-context.js';

/** A segment that could not end is tried again after this many steps … */
const RETRY_AFTER_STEPS = 10;
/** … or after this time in ms, for a run that makes no steps because it is blocked. */
const RETRY_AFTER_MS = 10 * 60_000;

/** Returns what the decision on a new segment depends on. */
export function segmentFacts(run: RunContext): SegmentFacts {
  // A new segment would lose an interruption.
  if (run.interruption !== null) return NEVER_FULL;
  const { step, at } = run.stayUntil;
  if (run.state.total.steps < step && Date.now() < at) return NEVER_FULL;
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
    ...(run.deferred.size > 0 && { allBlocked: true as const }),
  };
}

/** Postpones the end of a segment that cannot end now. */
export function postponeSegmentEnd(run: RunContext): void {
  const step = run.state.total.steps + RETRY_AFTER_STEPS;
  run.stayUntil = { step, at: Date.now() + RETRY_AFTER_MS };
}
