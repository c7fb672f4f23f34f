import { notExecuted, findTool } from '../../core/calls/batch.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  toolErrorCall,
  resolvedCall,
  succeededCall,
  type Resolution,
  type CallResult,
} from '../../core/calls/call-result.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { isObject, textField } from '../../core/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { RunToolResult } from '../../core/guards/recorded.js';
import type { HistoryEvent } from '../decode-event.js';
import type { EventFailure } from '../payloads.js';
import type { ProjectionState } from './state.js';
import { safetyResolution } from './safety.js';
import { hasCallsInFlight, interrupt, emit } from './emit.js';

/** The id and time of a history event. */
type EventRef = Pick<HistoryEvent, 'id' | 'at'>;

/** A tool's activity completed, with any result. */
export function callReturned(
  projection: ProjectionState,
  event: EventRef,
  { call, result }: { call: ToolCall; result: RunToolResult },
): void {
  const tool = toolFor(projection, call);
  if (tool === undefined) return;
  switch (result.ok) {
    case 'unknown':
      return unknown(projection, event, { call, message: result.message });
    case 'not_started':
      projection.notStarted.set(call.id, notExecuted(call, result.message));
      return;
    case true:
      return finishCall(projection, succeededCall(call, tool, result), event.at);
    case false:
      return finishCall(projection, toolErrorCall(call, result.text), event.at);
  }
}

/** A tool's activity failed permanently, or was lost. */
export function callFailed(
  projection: ProjectionState,
  event: EventRef,
  { call, failure }: { call: ToolCall; failure: EventFailure },
): void {
  const { message, timedOut } = failure;
  const lost = lostMessage(call.name, message);
  if (toolFor(projection, call)?.effect === 'once')
    return unknown(projection, event, { call, message: lost });
  if (!timedOut) {
    return finishCall(projection, failedCall(call, { type: 'tool_error', message }), event.at);
  }
  finishCall(projection, lostCall(call, lost), event.at);
}

/** A tool's activity was canceled. The batch completes when all its calls have stopped. */
export function callCanceled(projection: ProjectionState, call: ToolCall): void {
  const tool = toolFor(projection, call);
  if (tool === undefined) return;
  const result = cancelledCall(call, tool);
  // `resume` cancels only probes. The block of the call shows that this was one.
  if (projection.blocked.has(call.id)) projection.canceledProbes.set(call.id, result);
  else emit(projection, { type: 'call-finished', result });
}

/** The run continued without these calls, so they were abandoned. */
export function abandonCalls(projection: ProjectionState, at: number): void {
  for (const result of projection.notStarted.values()) finishCall(projection, result, at);
  projection.notStarted.clear();
}

/** A person resolved a call whose outcome was unknown. */
export function callResolved(
  projection: ProjectionState,
  event: EventRef & { readonly input: unknown },
): void {
  if (!isObject(event.input) || projection.state === null) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const resolution = event.input as unknown as Resolution;
  projection.blocked.delete(resolution.call);
  const call = projection.state.turn.batch?.calls.find(({ id }) => id === resolution.call);
  if (call === undefined) return;
  const tool = toolFor(projection, call);
  const safety = safetyResolution(projection, call, resolution);
  const result = safety === undefined ? tool && resolvedCall(call, tool, resolution) : safety;
  if (result) finishCall(projection, result, event.at);
}

/** A person accepted a tool in the form that it has now. */
export function toolAccepted(
  projection: ProjectionState,
  { input }: { readonly input: unknown },
): void {
  if (!isObject(input) || input['as'] !== 'accept' || projection.state === null) return;
  const asked = projection.state.turn.batch?.calls.find(({ id }) => id === input['call']);
  if (asked === undefined) return;
  const definition = textField(input, 'definition');
  emit(projection, { type: 'tool-accepted', tool: asked.name, definition });
}

export function toolFor(projection: ProjectionState, call: ToolCall): ToolDefinition | undefined {
  return projection.state === null ? undefined : findTool(projection.state, call.name);
}

function unknown(
  projection: ProjectionState,
  event: EventRef,
  { call, message }: { call: ToolCall; message: string },
): void {
  projection.blocked.set(call.id, { reason: 'outcome_unknown', message, since: event.id });
}

/** A call has its result. The last result of a batch completes the batch, as in the loop. */
export function finishCall(projection: ProjectionState, result: CallResult, at: number): void {
  projection.blocked.delete(result.id);
  projection.notStarted.delete(result.id);
  projection.canceledProbes.delete(result.id);
  emit(projection, { type: 'call-finished', result });
  if (hasCallsInFlight(projection)) return;
  if (projection.cancelRequested || projection.cancelTurnRequested) interrupt(projection, at);
  else emit(projection, { type: 'calls-finished', at });
}
