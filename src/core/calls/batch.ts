import { refusal, type CallResult } from './call-result.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { needsConsent } from '../requests/consent.js';
import { definedTool } from '../graph/node-tool.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { getOpenBatch, type Batch } from '../turn.js';
import { findWork } from '../work/work.js';
import { signature } from './idempotency.js';
import { waitedText, waitUntil } from './wait.js';

/** Maximum depth of agents that call agents, regardless of the limits. */
const MAX_DEPTH = 16;

/** Returns the calls that can be executed now; the others wait for calls of the same plan. */
export function readyCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  return openCalls(state, batch).filter(({ after }) => after === undefined);
}

/**
 * Returns the calls still to be executed, in order, without repeats of a call in the same batch.
 */
export function openCalls(state: RunState, batch: Batch): readonly ToolCall[] {
  const seen = new Set<string>();
  return batch.calls.filter((call, index) => {
    const tool = findTool(state, call.name);
    // A call that a person edited is always executed, regardless of other calls in the message.
    const guarded = tool && guardsRepeats(tool) && !call.problem && !call.edited && !call.node;
    const twin = guarded && seen.has(signature(call));
    if (guarded) seen.add(signature(call));
    return !twin && batch.results[index] === null;
  });
}

/** A wait that has not ended. */
export interface OpenWait {
  readonly call: ToolCall;
  /** When it ends, Unix time in ms. */
  readonly until: number;
}

/** Returns the waits among these calls. */
export function openWaits(
  state: RunState,
  batch: Batch,
  calls: readonly ToolCall[],
): readonly OpenWait[] {
  return calls.flatMap((call) => {
    if (findTool(state, call.name)?.kind !== 'wait') return [];
    // A wait that needs approval begins when a person approves it.
    if (needsConsent(state, call) && !findWork(state, call.id)?.approved) return [];
    const until = waitUntil(call.arguments, batch.at);
    return { call, until: typeof until === 'number' ? until : batch.at };
  });
}

/** Whether a waiting message has not yet woken this turn. Each message wakes it once. */
export function hasWakingMessage({ inbox, turn }: RunState): boolean {
  return inbox.waiting.length > 0 && (inbox.count ?? 0) > (turn.wokenBy ?? 0);
}

/**
 * Returns the results of the waits that end at `at` (Unix time in ms), because they expired or a
 * message woke them.
 */
export function finishedWaits(state: RunState, at: number): readonly CallResult[] {
  const batch = getOpenBatch(state);
  if (batch === null) return [];
  const woken = hasWakingMessage(state);
  return openWaits(state, batch, openCalls(state, batch)).flatMap(({ call, until }) => {
    const over = until <= at;
    if (!over && !woken) return [];
    const text = waitedText(call.arguments, !over);
    return { id: call.id, ok: true, text, executed: true };
  });
}

/** Reasons for which a limit refuses a call, for the model. */
export const CALLS_USED_UP = 'the tool-call limit has been reached';
export const DEPTH_REACHED = 'the maximum agent depth has been reached';

/** Returns the batch with one more result, at the place of its call. */
export function fillBatch(batch: Batch, result: CallResult): Batch {
  const results = batch.calls.map((call, index) =>
    call.id === result.id ? result : (batch.results[index] ?? null),
  );
  return { ...batch, results };
}

/** Returns the result of a call that was not executed. */
export function notExecuted(call: ToolCall, reason: string): CallResult {
  return refusal(call.id, { type: 'not_executed', message: `not executed: ${reason}` });
}

/** Returns the pinned definition of a tool; undefined if the agent has none of that name. */
export function findTool(state: RunState, name: string): ToolDefinition | undefined {
  return definedTool(state.config.definition, name);
}

/** Whether the call would start an agent below the maximum depth. */
export function tooDeep(state: RunState, call: ToolCall): boolean {
  const { limits, depth = 0 } = state.config;
  if (findTool(state, call.name)?.kind !== 'agent') return false;
  const { turn, run } = limits;
  return depth >= Math.min(turn.depth ?? MAX_DEPTH, run.depth ?? MAX_DEPTH, MAX_DEPTH);
}

/** Whether a repeated call of this tool is not executed. A repeated read is legitimate polling. */
export function guardsRepeats(tool: ToolDefinition): boolean {
  return tool.effect !== 'read' && tool.repeat !== 'allow';
}
