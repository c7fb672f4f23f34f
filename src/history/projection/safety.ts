import { openCalls } from '../../core/calls/batch.js';
import type { Resolution, CallResult } from '../../core/calls/call-result.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { safetyMessage, safetyResult } from '../../core/calls/safety.js';
import type { ProjectionState } from './state.js';

/** No event of its own says that a call waits for a person: the reply that asked for it does. */
export function safetyAsked(told: ProjectionState, since: number): void {
  const asked = doubtful(told);
  for (const [id, { reason }] of told.blocked) {
    if (reason === 'safety_check' && id !== asked?.id) told.blocked.delete(id);
  }
  if (asked === undefined || told.blocked.has(asked.id) || told.state?.paused) return;
  const message = safetyMessage(asked);
  told.blocked.set(asked.id, { reason: 'safety_check', message, since });
}

function doubtful({ state, ended, acknowledged }: ProjectionState): ToolCall | undefined {
  const batch = state?.turn.batch;
  if (!state || !batch || ended !== null) return undefined;
  if (!batch.calls.some(({ safety }) => safety !== undefined)) return undefined;
  const [first] = openCalls(state, batch).filter(({ safety }) => safety !== undefined);
  return first !== undefined && acknowledged.has(first.id) ? undefined : first;
}

/** @returns the call's result where there is one now, null where it is executed; undefined: not asked */
export function safetyResult(
  told: ProjectionState,
  call: ToolCall,
  resolution: Resolution,
): CallResult | null | undefined {
  if (call.safety === undefined || told.acknowledged.has(call.id)) return undefined;
  const result = safetyResult(call, resolution);
  if (result === null) told.acknowledged.add(call.id);
  return result;
}
