import { openCalls } from '../../core/calls/batch.js';
import type { Resolution, CallResult } from '../../core/calls/call-result.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { safetyMessage, safetyResult } from '../../core/calls/safety.js';
import type { ProjectionState } from './state.js';

/** Blocks a call that waits for a person. No event shows this; the reply that requested the call does. */
export function safetyAsked(projection: ProjectionState, since: number): void {
  const asked = openSafetyCheck(projection);
  for (const [id, { reason }] of projection.blocked) {
    if (reason === 'safety_check' && id !== asked?.id) projection.blocked.delete(id);
  }
  if (asked === undefined || projection.blocked.has(asked.id) || projection.state?.paused) return;
  const message = safetyMessage(asked);
  projection.blocked.set(asked.id, { reason: 'safety_check', message, since });
}

function openSafetyCheck({ state, ended, acknowledged }: ProjectionState): ToolCall | undefined {
  const batch = state?.turn.batch;
  if (!state || !batch || ended !== null) return undefined;
  if (!batch.calls.some(({ safety }) => safety !== undefined)) return undefined;
  const [first] = openCalls(state, batch).filter(({ safety }) => safety !== undefined);
  return first !== undefined && acknowledged.has(first.id) ? undefined : first;
}

/**
 * Returns the call's result if the decision gives one; null if the call is executed; undefined if no
 * safety check was open.
 */
export function safetyResolution(
  projection: ProjectionState,
  call: ToolCall,
  resolution: Resolution,
): CallResult | null | undefined {
  if (call.safety === undefined || projection.acknowledged.has(call.id)) return undefined;
  const result = safetyResult(call, resolution);
  if (result === null) projection.acknowledged.add(call.id);
  return result;
}
