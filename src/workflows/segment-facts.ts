import { workflowInfo } from '@temporalio/workflow';
import type { SegmentFacts } from '../core/segments/carry.js';
import { ROOMY } from '../core/next-action.js';
import type { Session } from './run-context.js';

/** Steps after which a segment that could not be left is tried to be left again. */
const PATIENCE_STEPS = 10;
/** The same for a run that makes no steps, such as one that is blocked; milliseconds. */
const PATIENCE_MS = 10 * 60_000;

export function segmentFacts(session: Session): SegmentFacts {
  // What somebody has broken off would be forgotten by a new segment.
  if (session.interruption !== null) return ROOMY;
  const { step, at } = session.stayUntil;
  if (session.state.total.steps < step && Date.now() < at) return ROOMY;
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
    ...(session.left.size > 0 && { standing: true as const }),
  };
}

/** The segment could not be left; that is tried again later. */
export function stay(session: Session): void {
  const step = session.state.total.steps + PATIENCE_STEPS;
  session.stayUntil = { step, at: Date.now() + PATIENCE_MS };
}
