import { workflowInfo } from '@temporalio/workflow';
import { nextAction, type Action } from '../core/next-action.js';
import type { SegmentFacts } from '../core/segments/carry.js';
import type { RunContext } from './run-context.js';

/** Returns the inputs of the decision on a new segment. The history records all of them. */
export function segmentFacts(): SegmentFacts {
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
  };
}

/**
 * Returns the run's current next action. It is computed once per state, because many conditions
 * need it while calls run and a large batch takes time.
 */
export function actionNow(run: RunContext): Action {
  const { state } = run;
  const { historyEvents } = segmentFacts();
  const now = Date.now();
  const { last } = run;
  if (last?.state === state && last.now === now && last.historyEvents === historyEvents) {
    return last.action;
  }
  const action = nextAction(state, segmentFacts(), now);
  run.last = { state, now, historyEvents, action };
  return action;
}

/** Whether the segment is full, and the next one can continue all work that is under way. */
export function mustLeave(run: RunContext): boolean {
  return actionNow(run).type === 'continue-as-new';
}
