import { callArtifacts } from '../../core/artifacts/named-artifacts.js';
import { findTool } from '../../core/calls/batch.js';
import { failedCall, type CallResult } from '../../core/calls/call-result.js';
import type { RunToolInput } from '../../core/contract.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { Interruption } from '../../core/events.js';
import type { RunState } from '../../core/state.js';
import { callSummary } from '../../core/text/summaries.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { DEFERRED, takeDeferred, type Deferred, type DeferredWork } from '../blocked-work.js';
import { acknowledgeSafety } from '../decisions.js';
import { takeInterruption, type RunContext } from '../run-context.js';
import { callKey } from './call-key.js';
import { executeAgentCall } from './execute-agent-call.js';
import { executeToolCall } from './execute-tool-call.js';

/** Calls that are executed at the same time. */
const MAX_PARALLEL_CALLS = 5;

/**
 * The loop's `runCalls`: the first five calls are scheduled in one workflow task, and each further one
 * when a call ends.
 */
export async function runCalls(
  run: RunContext,
  state: RunState,
  {
    calls,
    finished,
  }: { readonly calls: readonly ToolCall[]; readonly finished: (result: CallResult) => void },
): Promise<Interruption | null> {
  const waiting = [...calls];
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      // No call starts after an interruption or a pause; the reducer handles those that are left.
      if (run.interruption !== null || run.state.paused) return;
      const deferred = takeDeferred(run, call.id);
      // A call that was deferred for any other reason was acknowledged before.
      if (call.safety !== undefined && (deferred?.reason ?? 'safety_check') === 'safety_check') {
        const decision = await acknowledgeSafety(run, call);
        if (decision.type === 'interrupted' || decision.type === 'deferred') return;
        if (decision.type === 'rejected') {
          finished(decision.result);
          continue;
        }
      }
      const result = await runCall(run, state, { call, deferred });
      // The segment is full: the other calls start in the next one.
      if (result === DEFERRED) return;
      finished(result);
    }
  };
  if (calls.length === 1) await lane();
  else await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL_CALLS, calls.length) }, lane));
  return takeInterruption(run);
}

async function runCall(
  run: RunContext,
  state: RunState,
  { call, deferred }: { readonly call: ToolCall; readonly deferred: DeferredWork | undefined },
): Promise<CallResult | Deferred> {
  const tool = findTool(state, call.name);
  if (tool === undefined) {
    return failedCall(call, { type: 'unknown_tool', message: `no tool "${call.name}"` });
  }
  run.doing.set(call.id, callSummary(call));
  run.changed();
  try {
    if (tool.kind === 'agent') return await executeAgentCall(run, state, { call, tool });
    const input = toolInput(run, state, { call, tool });
    return await executeToolCall(run, { tool, input }, deferred);
  } finally {
    run.doing.delete(call.id);
  }
}

function toolInput(
  run: RunContext,
  state: RunState,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): RunToolInput {
  const { definition, contextBlob } = state.config;
  const turn = state.turn.number;
  const step = state.turn.batch?.step ?? state.turn.spent.steps;
  const { context } = run.input;
  const artifacts = callArtifacts(state, call, tool);
  return {
    definition: definition.hash,
    turn,
    step,
    call,
    effect: tool.effect,
    key: callKey(run.input, state, call),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
    ...(artifacts && { artifacts }),
    ...(run.input.called?.again && tool.effect === 'once' && { again: true as const }),
  };
}
