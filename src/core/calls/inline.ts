import type { RunState } from '../state/state.js';
import { getOpenBatch } from '../state/turn.js';
import type { ToolCall } from '../transcript/messages.js';
import { findTool, openCalls } from './batch.js';

/**
 * Returns the open calls of a reply if the workflow task itself may execute all of them: each is an
 * allowed call of an inline tool, and nothing else is under way. Otherwise, returns none. The calls
 * have not begun, so this holds only before the first of them does.
 */
export function inlineCalls(state: RunState): readonly ToolCall[] {
  const batch = getOpenBatch(state);
  // Undoing an earlier call, or a request about it, may change what the calls read.
  if (batch === null || state.graph !== undefined || state.work.length > 0) return [];
  // Sequential calls would take one task together, and an ending call drops those after it.
  const isSequential = state.config.definition.toolCalls !== 'parallel';
  if (isSequential && batch.calls.length > 1) return [];
  const calls = openCalls(state, batch);
  return calls.every((call) => isInline(state, call)) ? calls : [];
}

/** A call of a graph's node, or one with a verdict of the rules, is never inline. */
function isInline(state: RunState, { name, node, verdict, safety }: ToolCall): boolean {
  if (node !== undefined || verdict !== undefined || safety !== undefined) return false;
  const tool = findTool(state, name);
  if (tool?.inline !== true || tool.effect !== 'read' || tool.kind !== undefined) return false;
  return state.notInline?.includes(name) !== true;
}
