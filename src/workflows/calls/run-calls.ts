import { findTool } from '../../core/calls/batch.js';
import { interruptionOf } from '../../core/work/interruption.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findWork } from '../../core/work/work.js';
import type { RunContext } from '../run-context.js';
import { mustLeave } from '../segment-facts.js';
import { executeAgentCall } from './execute-agent-call.js';
import { executeToolCall } from './execute-tool-call.js';

/** Calls that are executed at the same time. */
const MAX_PARALLEL_CALLS = 5;

/**
 * Executes calls of the open batch: the first five are scheduled in one workflow task, and each further
 * one when a call ends. No call begins after an interruption or a pause, or when the segment is full.
 */
export async function runCalls(run: RunContext, calls: readonly ToolCall[]): Promise<void> {
  const waiting = [...calls];
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      if (interruptionOf(run.state) !== null) return;
      const isNew = findWork(run.state, call.id) === undefined;
      if (isNew && (run.state.paused || mustLeave(run))) continue;
      await runCall(run, call);
    }
  };
  if (calls.length === 1) await lane();
  else await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL_CALLS, calls.length) }, lane));
}

function runCall(run: RunContext, call: ToolCall): Promise<unknown> {
  const tool = findTool(run.state, call.name);
  // A call of an unknown tool has its result when the batch opens.
  if (tool === undefined) throw new Error(`no tool "${call.name}"`);
  return tool.kind === 'agent'
    ? executeAgentCall(run, { call, tool })
    : executeToolCall(run, { call, tool });
}
