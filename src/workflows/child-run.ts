import {
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  workflowInfo,
} from '@temporalio/workflow';
import { cancelledCall, refusedCall } from '../core/call-results.js';
import { errorText, type CallResult } from '../core/calls.js';
import { childBudget, childResult, type ChildEnd } from '../core/child.js';
import type { ToolDefinition } from '../core/definition.js';
import { sha256Hex } from '../core/digest.js';
import type { RunInput } from '../core/input.js';
import { isObject, parseJson, textOf } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import type { Outcome } from '../core/outcome.js';
import type { RunState } from '../core/state.js';
import { callSummary } from '../core/summaries.js';
import type { agent } from './agent.js';
import { messageOf } from './problem.js';
import { inFlight, type Session } from './session.js';

/** UTF-16 code units; a workflow id may have 1,000 bytes. */
const LONGEST_CALLER = 300;

/** A call of an agent: a child run. Never rejects for what becomes of it. */
export async function runChild(
  session: Session,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): Promise<CallResult> {
  const { agent: name = '', parentClose = 'request_cancel' } = tool.calls ?? {};
  if (call.blob !== undefined) {
    const message = `${call.blob.bytes} bytes are too much for a message; put the text into a file and name the file`;
    return refusedCall(call, errorText({ type: 'invalid_arguments', message }));
  }
  const given = parseJson(call.arguments);
  const { contextBlob } = state.config;
  const { context } = session.input;
  const input: RunInput = {
    agent: name,
    message: isObject(given) ? textOf(given, 'message') : '',
    depth: (state.config.depth ?? 0) + 1,
    budget: childBudget(state, Date.now()),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
  try {
    const outcome = await inFlight(session, () =>
      executeChild<typeof agent>('agent', {
        workflowId: childId(call),
        args: [input],
        parentClosePolicy: CLOSE[parentClose],
        cancellationType:
          parentClose === 'abandon'
            ? ChildWorkflowCancellationType.ABANDON
            : ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
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

/** The caller's id and the call's; where that would be longer than an id may be, with a digest. */
function childId(call: ToolCall): string {
  const { workflowId } = workflowInfo();
  const caller = workflowId.length <= LONGEST_CALLER ? workflowId : sha256Hex(workflowId);
  return `${caller}/${call.id}`;
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
