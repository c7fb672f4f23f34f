import { ChildWorkflowCancellationType, workflowInfo } from '@temporalio/workflow';
import { cancelledCall, refusedCall } from '../../core/calls/call-results.js';
import { calledId } from '../../core/calls/called.js';
import { errorText, type CallResult } from '../../core/calls/calls.js';
import { childBudget, childResult, type ChildEnd } from '../../core/calls/child.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { sha256Hex } from '../../core/digest.js';
import type { RunInput } from '../../core/input/input.js';
import { isObject, parseJson, textOf } from '../../core/json.js';
import { workflowSummary } from '../../core/text/markdown.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { RunState } from '../../core/state.js';
import { callSummary } from '../../core/text/summaries.js';
import { callKey } from './call-key.js';
import { endOfChild, runCalled } from './called-run.js';
import { inFlight, type Session } from '../run-context.js';

/** Runs one call of an agent as a child run. Never rejects, however the child ends. */
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
  const key = callKey(session.input, state, call);
  const { workflowId } = workflowInfo();
  const end = await inFlight(session, () =>
    runCalled(
      input,
      { key, close: parentClose, summary: callSummary(call) },
      {
        workflowId: calledId({ workflowId, name: call.id, key }, sha256Hex),
        parentClosePolicy: CLOSE[parentClose],
        cancellationType:
          parentClose === 'abandon'
            ? ChildWorkflowCancellationType.ABANDON
            : ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        staticSummary: workflowSummary(callSummary(call)),
      },
    ),
  ).then((outcome): ChildEnd => ({ outcome, message: '' }), endOfChild);
  const result = childResult(call, end);
  const { status } = end.outcome ?? {};
  if (session.interruption === null || status === 'completed' || status === 'stopped') {
    return result;
  }
  return { ...cancelledCall(call, tool), ...(result.usage && { usage: result.usage }) };
}

const CLOSE = {
  terminate: 'TERMINATE',
  request_cancel: 'REQUEST_CANCEL',
  abandon: 'ABANDON',
} as const;
