import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  type ChildWorkflowOptions,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { ChildEnd } from '../../core/calls/child.js';
import type { ParentClose } from '../../core/definition/definition.js';
import type { RunInput } from '../../core/input/input.js';
import type { Outcome } from '../../core/outcome.js';
import { isFollowResult, isOutcome } from '../../core/guards/recorded.js';
import { followActivity } from '../activities.js';
import type { agent } from '../agent.js';
import { checkedResult, failureMessage } from '../activity-result.js';

/** One call of an agent. */
export interface AgentCall {
  /** The call's idempotency key; the keys of the called agent derive from it. */
  readonly key: string;
  readonly close: ParentClose;
  /** One line for people. */
  readonly summary: string;
}

/**
 * Runs an agent as a child workflow, at most once per call. After a reset, the child may exist already:
 * then an activity follows that run and returns its outcome. If that run ended without an outcome, the
 * agent runs again under the same idempotency keys.
 *
 * Rejects with the `ChildWorkflowFailure` of a child that failed, was canceled, or left no outcome,
 * with the `ApplicationFailure` of `checkedResult` for a result that is not an outcome (a workflow of
 * any code may have the id), and with `WorkflowExecutionAlreadyStartedError` if a run of another origin
 * has the id.
 */
export async function runChildOnce(
  input: RunInput,
  { key, close, summary }: AgentCall,
  options: ChildWorkflowOptions & { readonly workflowId: string },
): Promise<Outcome> {
  const follow = followActivity({ summary, close, taskQueue: options.taskQueue });
  let again = false;
  let workflowIdReusePolicy: NonNullable<ChildWorkflowOptions['workflowIdReusePolicy']> =
    'REJECT_DUPLICATE';
  for (;;) {
    try {
      const outcome = await executeChild<typeof agent>('agent', {
        cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        ...options,
        workflowIdReusePolicy,
        args: [{ ...input, called: { key, ...(again && { again }) } }],
      });
      return checkedResult('agent', isOutcome, outcome);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const followed = await follow({ run: options.workflowId, key, close });
      const found = checkedResult('followRun', isFollowResult, followed);
      if (found.type === 'ended') return found.outcome;
      if (found.type === 'other' && found.running) throw error;
      again ||= found.type === 'lost';
      workflowIdReusePolicy = 'ALLOW_DUPLICATE';
    }
  }
}

/** Returns how a failed child ended; its outcome is in the details of the failure. */
export function toChildEnd(error: unknown): ChildEnd {
  const wrapped = error instanceof ChildWorkflowFailure || error instanceof ActivityFailure;
  const cause = wrapped ? error.cause : error;
  const details =
    cause instanceof ApplicationFailure || cause instanceof CancelledFailure ? cause.details : [];
  const [first] = details ?? [];
  const message = cause instanceof Error ? cause.message : failureMessage(error);
  return { outcome: isOutcome(first) ? first : null, message };
}
