import { nodeOfCall } from '../graph/node-tool.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { grantFor } from './grants.js';

/** Whether a call needs a person's approval before it begins. */
export function needsConsent(state: RunState, call: ToolCall): boolean {
  return !isConfirmed(call) && call.verdict?.then === 'ask' && grantFor(state, call) === undefined;
}

/**
 * Whether a person's confirmation of the plan covers the call. If the rules were evaluated only
 * afterwards, it covers neither deciders that they name nor arguments that were not shown.
 */
function isConfirmed({ confirmed, asks, verdict, parsed }: ToolCall): boolean {
  if (!confirmed) return false;
  return !asks || (verdict?.deciders === undefined && parsed === undefined);
}

/** Whether a graph's node makes the call and no worker has applied the rules to it yet. */
export function isUnjudged(call: ToolCall): boolean {
  return call.node !== undefined && nodeOfCall(call) === null && call.verdict === undefined;
}
