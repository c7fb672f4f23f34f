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
import type { ParentClose } from '../../core/definition/tool-definition.js';
import type { RunInput } from '../../core/input/input.js';
import type { Outcome } from '../../core/outcome.js';
import { isFollowResult, isOutcome, type FollowRunResult } from '../../core/guards/recorded.js';
import type { FactOf } from '../../core/facts.js';
import { followActivity } from '../activities.js';
import { checkedResult, failureFact, failureMessage } from '../activity-result.js';
import type { AgentWorkflow } from '../messages/definitions.js';
import type { Observed } from '../run-context.js';

/** One call of an agent. */
export interface AgentCall {
  /** The call's idempotency key; the keys of the called agent derive from it. */
  readonly key: string;
  readonly close: ParentClose;
  /** One line for people. */
  readonly summary: string;
  /** The call's id; empty for a workflow of another kind. */
  readonly call?: string;
  /** An earlier run for this call ended without an outcome. */
  readonly again?: boolean;
  /** The parent span of the run. */
  readonly span?: string | undefined;
  /** Receives the recorded events of the child as facts. */
  readonly observe?: (fact: ChildFact) => void;
}

type ChildFact = Observed<
  FactOf<'scheduled' | 'completed' | 'failed' | 'cancelled' | 'child-ended' | 'child-existed'>
>;

/**
 * Runs an agent as a child workflow, at most once per call. After a reset, the child may already
 * exist; an activity then follows that run and returns its outcome. If that run ended without an
 * outcome, the agent runs again under the same idempotency keys.
 *
 * Rejects with the `ChildWorkflowFailure` of a child that failed, was canceled, or left no outcome,
 * with the `ApplicationFailure` of `checkedResult` for a result that is not an outcome (any
 * workflow may have the id), and with `WorkflowExecutionAlreadyStartedError` if a run of another
 * origin has the id.
 */
export async function runChildOnce(
  input: RunInput,
  agentCall: AgentCall,
  options: ChildWorkflowOptions & { readonly workflowId: string },
): Promise<Outcome> {
  const { key, call = '', span, observe = () => undefined } = agentCall;
  let again = agentCall.again ?? false;
  let workflowIdReusePolicy: NonNullable<ChildWorkflowOptions['workflowIdReusePolicy']> =
    'REJECT_DUPLICATE';
  for (;;) {
    const { workflowId: started } = options;
    observe({ type: 'scheduled', task: { activity: 'agent', input: { call, run: started } } });
    try {
      const outcome = await executeChild<AgentWorkflow>('agent', {
        cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        ...options,
        workflowIdReusePolicy,
        args: [
          {
            ...input,
            called: { key, ...(again && { again }), ...(span !== undefined && { span }) },
          },
        ],
      });
      const checked = checkedResult('agent', isOutcome, outcome);
      observe({ type: 'child-ended', call, outcome: checked, message: '' });
      return checked;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) {
        observe({ type: 'child-ended', call, ...toChildEnd(error) });
        throw error;
      }
      observe({ type: 'child-existed', call });
      const found = await followChild(agentCall, options);
      if (found.type === 'ended') return found.outcome;
      if (found.type === 'other' && found.running) throw error;
      again ||= found.type === 'lost';
      workflowIdReusePolicy = 'ALLOW_DUPLICATE';
    }
  }
}

async function followChild(
  { key, close, summary, observe = () => undefined }: AgentCall,
  { workflowId, taskQueue }: ChildWorkflowOptions & { readonly workflowId: string },
): Promise<FollowRunResult> {
  const input = { run: workflowId, key, close };
  const task = { activity: 'followRun', input };
  observe({ type: 'scheduled', task });
  try {
    const result = await followActivity({ summary, close, taskQueue })(input);
    observe({ type: 'completed', task, result });
    return checkedResult('followRun', isFollowResult, result);
  } catch (error) {
    // A malformed result is already recorded as completed.
    observe(failureFact(task, error));
    throw error;
  }
}

/** Returns the end of a failed child, with the outcome from the details of the failure. */
export function toChildEnd(error: unknown): ChildEnd {
  const wrapped = error instanceof ChildWorkflowFailure || error instanceof ActivityFailure;
  const cause = wrapped ? error.cause : error;
  const details =
    cause instanceof ApplicationFailure || cause instanceof CancelledFailure ? cause.details : [];
  const [first] = details ?? [];
  const message = cause instanceof Error ? cause.message : failureMessage(error);
  return { outcome: isOutcome(first) ? first : null, message };
}
