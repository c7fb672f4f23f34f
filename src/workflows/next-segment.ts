import { allHandlersFinished, condition } from '@temporalio/workflow';
import { nextAction } from '../core/next-action.js';
import { carry, handOver } from './continue-as-new.js';
import { startClock } from './deadline-timer.js';
import { keepForSegment } from './archive-messages.js';
import { segmentFacts, stay } from './segment-facts.js';
import type { Session } from './run-context.js';

/**
 * Goes on in a new segment, between two steps: nothing is in flight, no handler is open. Where the
 * messages cannot be kept the run stays, and tries again some steps later.
 */
export async function continueAsNew(session: Session): Promise<void> {
  if (!(await keepForSegment(session))) return stay(session);
  session.leaving = true;
  if (!allHandlersFinished()) await condition(allHandlersFinished);
  session.leaving = false;
  // Meanwhile somebody may have cancelled.
  if (nextAction(session.state, segmentFacts(session)).type !== 'continue-as-new') return;
  session.clock?.cancel();
  const carried = carry(session);
  if (carried === null) {
    stay(session);
    return startClock(session);
  }
  await handOver(session, carried);
}
