import { workflowInfo } from '@temporalio/workflow';
import type { RunToolInput } from '../activities/contract.js';
import { toolOf } from '../core/batch.js';
import { failedCall } from '../core/call-results.js';
import { idempotencyKey, type CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import type { CallsEnd } from '../core/loop.js';
import type { ToolCall } from '../core/messages.js';
import { callArtefacts } from '../core/named-artefacts.js';
import type { RunState } from '../core/state.js';
import { callSummary } from '../core/summaries.js';
import { runChild } from './child-run.js';
import { executeCall } from './execute-call.js';
import { passSafety } from './safety-check.js';
import { takeInterruption, type Session } from './session.js';

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
      // Nothing new is started once the work is broken off or paused; the reducer knows what is left.
      if (session.interruption !== null || session.state.paused) return;
      if (call.safety !== undefined) {
        const passed = await passSafety(session, call);
        if (passed.type === 'broken_off') return;
        if (passed.type === 'refused') {
          results.push(passed.result);
          continue;
        }
      }
      results.push(await runCall(session, state, call));
    }
  };
  if (calls.length === 1) await lane();
  else await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls.length) }, lane));
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
    if (tool.kind === 'agent') return await runChild(session, state, { call, tool });
    return await executeCall(session, { tool, input: toolInput(session, state, { call, tool }) });
  } finally {
    session.doing.delete(call.id);
  }
}

function toolInput(
  session: Session,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): RunToolInput {
  const { definition, contextBlob } = state.config;
  const { namespace, workflowId, firstExecutionRunId: firstRunId } = workflowInfo();
  const turn = state.turn.number;
  const step = state.turn.batch?.step ?? state.turn.spent.steps;
  const index = state.turn.batch?.calls.findIndex(({ id }) => id === call.id) ?? 0;
  const { context } = session.input;
  const artefacts = callArtefacts(state, call, tool);
  return {
    definition: definition.hash,
    turn,
    step,
    call,
    effect: tool.effect,
    key: idempotencyKey({ namespace, workflowId, firstRunId, turn, step, index }, call),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
    ...(artefacts && { artefacts }),
  };
}
