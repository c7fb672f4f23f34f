import { ChildWorkflowCancellationType, workflowInfo } from '@temporalio/workflow';
import { calledId } from '../../core/calls/idempotency.js';
import { childBudget } from '../../core/calls/child.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { sha256Hex } from '../../core/digest.js';
import { currentNode } from '../../core/graph/node-tool.js';
import { continuedRun } from '../../core/graph/conversations.js';
import type { RunInput } from '../../core/input/input.js';
import { peopleOf } from '../../core/requests/grants.js';
import { isObject, parseJson, textField, type JsonObject } from '../../core/json.js';
import { workflowSummary } from '../../core/text/markdown.js';
import { callSummary } from '../../core/text/summaries.js';
import { getOpenBatch } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findWork } from '../../core/work/work.js';
import { contextFields, inFlight, recordNow, type RunContext } from '../run-context.js';
import { callKey } from './call-key.js';
import { mayExecute, needsJudgment } from './execute-tool-call.js';
import { runChildOnce } from './run-child-once.js';

/**
 * Executes one call of an agent as a child run. Never rejects, regardless of how the child ends.
 */
export async function executeAgentCall(
  run: RunContext,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): Promise<void> {
  if (needsJudgment(call) && !(await mayExecute(run, { call, tool }))) return;
  const { state } = run;
  const { parentClose = 'request_cancel' } = tool.calls ?? {};
  const key = callKey(run.input, state, call);
  const { workflowId } = workflowInfo();
  const summary = callSummary(call);
  run.doing.set(call.id, summary);
  run.publishStatus();
  try {
    await inFlight(run, () =>
      runChildOnce(
        childInput(run, { call, tool }),
        {
          key,
          close: parentClose,
          summary,
          call: call.id,
          span: getOpenBatch(state)?.span,
          again: findWork(state, call.id)?.again === true,
          observe: (fact) => recordNow(run, fact),
        },
        {
          workflowId: calledId({ workflowId, name: call.id, key }, sha256Hex),
          parentClosePolicy: CLOSE[parentClose],
          cancellationType:
            parentClose === 'abandon'
              ? ChildWorkflowCancellationType.ABANDON
              : ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
          staticSummary: workflowSummary(summary),
        },
      ),
    );
  } catch {
    // The end of the child is recorded as a fact.
  } finally {
    run.doing.delete(call.id);
  }
}

function childInput(
  run: RunContext,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): RunInput {
  const { state, input } = run;
  const args = parseJson(call.arguments);
  const { depth = 0 } = state.config;
  const { rules, unattended, modelAttempts } = input;
  const { requesters, joining, anonymous } = peopleOf(state);
  const people = [...new Set([...requesters, ...joining])];
  // A call for an unknown person has no name, so the called agent does not know everyone, either.
  const [by, ...others] = anonymous ? [undefined, ...people] : people;
  return {
    agent: tool.calls?.agent ?? '',
    ...messageOrInput(args, tool.calls?.prompt),
    ...conversationOf(state),
    depth: depth + 1,
    budget: childBudget(state, Date.now()),
    ...(rules && { rules }),
    ...(unattended && { unattended }),
    ...(modelAttempts !== undefined && { modelAttempts }),
    ...(by !== undefined && { by }),
    ...(others.length > 0 && { requesters: people }),
    ...contextFields(run),
  };
}

/** Returns the fork of the previous run if the node continues its conversation. */
function conversationOf(state: RunContext['state']): Pick<RunInput, 'fork'> {
  const node = currentNode(state);
  if (node?.kind !== 'agent' || !node.continues) return {};
  const run = continuedRun(state, node);
  return run === undefined ? {} : { fork: { run } };
}

/**
 * Returns the input of a called graph, or the message or prompt and the template arguments of a
 * called agent.
 */
function messageOrInput(
  callArguments: unknown,
  prompt: string | undefined,
): Pick<RunInput, 'message' | 'input' | 'args' | 'prompt' | 'promptArgs'> {
  if (!isObject(callArguments)) return { message: '' };
  const input = jsonField(callArguments, 'input');
  if (input !== null) return { input };
  const args = jsonField(callArguments, 'args');
  if (prompt !== undefined) {
    const promptArgs = jsonField(callArguments, 'promptArgs');
    return { prompt, ...(promptArgs && { promptArgs }), ...(args && { args }) };
  }
  return { message: textField(callArguments, 'message'), ...(args && { args }) };
}

function jsonField(object: Readonly<Record<string, unknown>>, name: string): JsonObject | null {
  const value = object[name];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parsed from JSON
  return isObject(value) ? (value as JsonObject) : null;
}

const CLOSE = {
  terminate: 'TERMINATE',
  request_cancel: 'REQUEST_CANCEL',
  abandon: 'ABANDON',
} as const;
