import { isCancellation, workflowInfo } from '@temporalio/workflow';
import type { RunToolInput, RunToolResult } from '../activities/contract.js';
import { toolOf } from '../core/batch.js';
import { TOOL_BLOCKS } from '../core/blocked.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  refusedCall,
  succeededCall,
} from '../core/call-results.js';
import { idempotencyKey, type CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import type { CallsEnd } from '../core/loop.js';
import type { ToolCall } from '../core/messages.js';
import type { RunState } from '../core/state.js';
import { callSummary } from '../core/summaries.js';
import { toolActivity } from './activities.js';
import { untilMended } from './blocking.js';
import { isLost, messageOf } from './problem.js';
import { takeInterruption, type Session } from './session.js';
import { settleUnknown } from './unknown-outcome.js';

const AT_ONCE = 5;

/** The loop's `runCalls`: the first five are scheduled in one workflow task, the next as one ends. */
export async function runCalls(
  session: Session,
  state: RunState,
  calls: readonly ToolCall[],
): Promise<CallsEnd> {
  const results: CallResult[] = [];
  const waiting = [...calls];
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      // Nothing new is started once the work is broken off; the reducer answers what is left.
      if (session.interruption !== null) return;
      results.push(await runCall(session, state, call));
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls.length) }, lane));
  const interrupted = takeInterruption(session);
  return interrupted === null ? { results } : { results, interrupted };
}

async function runCall(session: Session, state: RunState, call: ToolCall): Promise<CallResult> {
  const tool = toolOf(state, call.name);
  if (tool === undefined) {
    return failedCall(call, { type: 'unknown_tool', message: `no tool "${call.name}"` });
  }
  session.doing.set(call.id, callSummary(call));
  session.changed();
  try {
    return await execute(session, { tool, input: toolInput(session, state, call) });
  } finally {
    session.doing.delete(call.id);
  }
}

async function execute(
  session: Session,
  work: { tool: ToolDefinition; input: RunToolInput },
): Promise<CallResult> {
  const { tool, input } = work;
  const { call } = input;
  const activity = toolActivity(tool, callSummary(call));
  for (;;) {
    const end = await attempt(session, work, () =>
      untilMended(session, {
        name: call.id,
        reasons: TOOL_BLOCKS,
        attempt: (blocked) => activity(blocked === undefined ? input : { ...input, blocked }),
      }),
    );
    if (end.type === 'result') return end.result;
    const settled = await settleUnknown(session, { ...work, message: end.message });
    if (settled.type === 'settled') return settled.result;
    if (settled.type === 'cancelled') return cancelledCall(call, tool);
  }
}

type AttemptEnd =
  | { readonly type: 'result'; readonly result: CallResult }
  | { readonly type: 'unknown'; readonly message: string };

async function attempt(
  session: Session,
  { tool, input: { call } }: { tool: ToolDefinition; input: RunToolInput },
  run: () => Promise<RunToolResult>,
): Promise<AttemptEnd> {
  try {
    const result = await run();
    if (result.ok === 'unknown') return { type: 'unknown', message: result.message };
    if (!result.ok) return ended(refusedCall(call, result.text));
    return ended(succeededCall(call, tool, result));
  } catch (error) {
    if (session.interruption !== null && isCancellation(error))
      return ended(cancelledCall(call, tool));
    const message = messageOf(error);
    if (!isLost(error)) return ended(failedCall(call, { type: 'tool_error', message }));
    const lost = lostMessage(tool.name, message);
    return tool.effect === 'once'
      ? { type: 'unknown', message: lost }
      : ended(lostCall(call, lost));
  }
}

function ended(result: CallResult): AttemptEnd {
  return { type: 'result', result };
}

function toolInput(session: Session, state: RunState, call: ToolCall): RunToolInput {
  const { definition, contextBlob } = state.config;
  const { namespace, workflowId, firstExecutionRunId: firstRunId } = workflowInfo();
  const turn = state.turn.number;
  const step = state.turn.batch?.step ?? state.turn.spent.steps;
  const index = state.turn.batch?.calls.findIndex(({ id }) => id === call.id) ?? 0;
  const { context } = session.input;
  return {
    definition: definition.hash,
    turn,
    step,
    call,
    key: idempotencyKey({ namespace, workflowId, firstRunId, turn, step, index }, call),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
}
