import { ChildWorkflowCancellationType, workflowInfo } from '@temporalio/workflow';
import {
  cancelledCall,
  toolErrorCall,
  errorText,
  type CallResult,
} from '../../core/calls/call-result.js';
import { calledId } from '../../core/calls/idempotency.js';
import { childBudget, childResult, type ChildEnd } from '../../core/calls/child.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { sha256Hex } from '../../core/digest.js';
import type { RunInput } from '../../core/input/input.js';
import { isObject, parseJson, textField } from '../../core/json.js';
import { workflowSummary } from '../../core/text/markdown.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { RunState } from '../../core/state.js';
import { callSummary } from '../../core/text/summaries.js';
import { callKey } from './call-key.js';
import { toChildEnd, runChildOnce } from './run-child-once.js';
import { inFlight, type RunContext } from '../run-context.js';

/** Executes one call of an agent as a child run. Never rejects, however the child ends. */
export async function executeAgentCall(
  run: RunContext,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): Promise<CallResult> {
  const { agent: name = '', parentClose = 'request_cancel' } = tool.calls ?? {};
  if (call.blob !== undefined) {
    const message = `message: ${call.blob.bytes} bytes are too many; put the text into a file and name the file`;
    return toolErrorCall(call, errorText({ type: 'invalid_arguments', message }));
  }
  const given = parseJson(call.arguments);
  const { contextBlob } = state.config;
  const { context } = run.input;
  const input: RunInput = {
    agent: name,
    message: isObject(given) ? textField(given, 'message') : '',
    depth: (state.config.depth ?? 0) + 1,
    budget: childBudget(state, Date.now()),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
  const key = callKey(run.input, state, call);
  const { workflowId } = workflowInfo();
  const end = await inFlight(run, () =>
    runChildOnce(
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
  ).then((outcome): ChildEnd => ({ outcome, message: '' }), toChildEnd);
  const result = childResult(call, end);
  const { status } = end.outcome ?? {};
  if (run.interruption === null || status === 'completed' || status === 'stopped') {
    return result;
  }
  return { ...cancelledCall(call, tool), ...(result.usage && { usage: result.usage }) };
}

const CLOSE = {
  terminate: 'TERMINATE',
  request_cancel: 'REQUEST_CANCEL',
  abandon: 'ABANDON',
} as const;
