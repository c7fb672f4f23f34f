import { workflowInfo } from '@temporalio/workflow';
import { nextAction } from '../core/next-action.js';
import type { SegmentFacts } from '../core/segments/carry.js';
import type { RunContext } from './run-context.js';

/** Returns what the decision on a new segment depends on. The history records all of it. */
export function segmentFacts(): SegmentFacts {
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
  };
}

/** Whether the segment is full, and the next one can continue all work that is under way. */
export function mustLeave({ state }: RunContext): boolean {
  return nextAction(state, segmentFacts(), Date.now()).type === 'continue-as-new';
}
