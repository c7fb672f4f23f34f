import { allHandlersFinished, condition, workflowInfo } from '@temporalio/workflow';
import type { SegmentFacts } from '../core/carry.js';
import { nextAction, ROOMY } from '../core/next-action.js';
import { carry, handOver } from './carried.js';
import { startClock } from './clock.js';
import { keepForSegment } from './keep.js';
import type { Session } from './session.js';

/** Steps after which a segment that could not be left is tried to be left again. */
const PATIENCE_STEPS = 10;

export function segmentFacts(session: Session): SegmentFacts {
  // What somebody has broken off would be forgotten by a new segment.
  if (session.interruption !== null) return { ...ROOMY, postponed: true };
  if (session.state.total.steps < session.stayUntilStep) return { ...ROOMY, postponed: true };
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
  };
}

/**
 * Goes on in a new segment, between two steps: nothing is in flight, no handler is open. Where the
 * messages cannot be kept the run stays, and tries again some steps later.
 */
export async function continueAsNew(session: Session): Promise<void> {
  if (!(await keepForSegment(session))) {
    session.stayUntilStep = session.state.total.steps + PATIENCE_STEPS;
    return;
  }
  session.leaving = true;
  if (!allHandlersFinished()) await condition(allHandlersFinished);
  session.leaving = false;
  // Meanwhile somebody may have cancelled.
  if (nextAction(session.state, segmentFacts(session)).type !== 'continue-as-new') return;
  session.clock?.cancel();
  const carried = carry(session);
  if (carried === null) {
    session.stayUntilStep = session.state.total.steps + PATIENCE_STEPS;
    return startClock(session);
  }
  await handOver(session, carried);
}
