import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { grantFor } from './grants.js';

/** Whether a call needs a person's approval before it begins. */
export function needsConsent(state: RunState, call: ToolCall): boolean {
  if (call.confirmed) return false;
  return call.verdict?.then === 'ask' && grantFor(state, call) === undefined;
}
