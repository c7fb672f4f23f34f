import {
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  workflowInfo,
} from '@temporalio/workflow';
import { cancelledCall } from '../core/call-results.js';
import type { CallResult } from '../core/calls.js';
import { childBudget, childResult, type ChildEnd } from '../core/child.js';
import type { ToolDefinition } from '../core/definition.js';
import type { RunInput } from '../core/input.js';
import { isObject, parseJson, textOf } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import type { Outcome } from '../core/outcome.js';
import type { RunState } from '../core/state.js';
import { callSummary } from '../core/summaries.js';
import type { agent } from './agent.js';
import { messageOf } from './problem.js';
import { inFlight, type Session } from './session.js';

/** A call of an agent: a child run. Never rejects for what becomes of it. */
export async function runChild(
  session: Session,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): Promise<CallResult> {
  const { agent: name = '', parentClose = 'request_cancel' } = tool.calls ?? {};
  const given = parseJson(call.arguments);
  const input: RunInput = {
    agent: name,
    message: isObject(given) ? textOf(given, 'message') : '',
    depth: (state.config.depth ?? 0) + 1,
    budget: childBudget(state, Date.now()),
    ...(session.input.context !== undefined && { context: session.input.context }),
  };
  try {
    const outcome = await inFlight(session, () =>
      executeChild<typeof agent>('agent', {
        workflowId: `${workflowInfo().workflowId}/${call.id}`,
        args: [input],
        parentClosePolicy: CLOSE[parentClose],
        cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        staticSummary: callSummary(call),
      }),
    );
    return childResult(call, { outcome, message: '' });
  } catch (error) {
    const result = childResult(call, endOfChild(error));
    if (session.interruption === null) return result;
    return { ...cancelledCall(call, tool), ...(result.usage && { usage: result.usage }) };
  }
}

const CLOSE = {
  terminate: 'TERMINATE',
  request_cancel: 'REQUEST_CANCEL',
  abandon: 'ABANDON',
} as const;

/** What a child run that did not return has left: its outcome travels in the failure's details. */
export function endOfChild(error: unknown): ChildEnd {
  const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
  const details =
    cause instanceof ApplicationFailure || cause instanceof CancelledFailure ? cause.details : [];
  const [first] = details ?? [];
  const message = cause instanceof Error ? cause.message : messageOf(error);
  return { outcome: isOutcome(first) ? first : null, message };
}

function isOutcome(value: unknown): value is Outcome {
  return isObject(value) && typeof value['status'] === 'string' && isObject(value['usage']);
}
