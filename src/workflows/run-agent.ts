import {
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  type ChildWorkflowOptions,
} from '@temporalio/workflow';
import type { RunInput } from '../core/input.js';
import type { Outcome } from '../core/outcome.js';
import type { agent } from './agent.js';
import { endOfChild } from './child-run.js';

/**
 * Runs an agent from a workflow of your own and gives its outcome as a value, whatever the status:
 * a limit, a refusal or a failed turn is no exception. Rejects with the `ChildWorkflowFailure` when
 * the run left no outcome (it was terminated), and when your own workflow is cancelled.
 */
export async function runAgent(
  input: RunInput,
  options: Pick<
    ChildWorkflowOptions,
    'workflowId' | 'taskQueue' | 'parentClosePolicy' | 'searchAttributes' | 'memo' | 'priority'
  > = {},
): Promise<Outcome> {
  try {
    return await executeChild<typeof agent>('agent', {
      cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
      ...options,
      args: [input],
    });
  } catch (error) {
    const { outcome } = endOfChild(error);
    if (!(error instanceof ChildWorkflowFailure) || outcome === null) throw error;
    return outcome;
  }
}
