import { notExecuted, findTool } from '../../core/calls/batch.js';
import { cancelledCall, failedCall, lostCall, lostMessage, toolErrorCall, resolvedCall, succeededCall, type Resolution, type CallResult } from '../../core/calls/call-result.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { isObject, textField } from '../../core/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import type { RunToolResult } from '../../core/guards/recorded.js';
import type { HistoryEvent } from '../decode-event.js';
import type { EventFailure } from '../payloads.js';
import type { ProjectionState } from './state.js';
import { safetyResult } from './safety.js';
import { callsRunning, interrupt, tell } from './emit.js';

/** The event that says it, as far as its place in the history matters. */
type Said = Pick<HistoryEvent, 'id' | 'at'>;

/** A tool's activity ended in order, with whatever result. */
export function callReturned(
  told: ProjectionState,
  said: Said,
  { call, result }: { call: ToolCall; result: RunToolResult },
): void {
  const tool = toolFor(told, call);
  if (tool === undefined) return;
  switch (result.ok) {
    case 'unknown':
      return unknown(told, said, { call, message: result.message });
    case 'not_started':
      told.notStarted.set(call.id, notExecuted(call, result.message));
      return;
    case true:
      return settle(told, succeededCall(call, tool, result), said.at);
    case false:
      return settle(told, toolErrorCall(call, result.text), said.at);
  }
}

/** A tool's activity failed for good, or was lost. */
export function callFailed(
  told: ProjectionState,
  said: Said,
  { call, failure }: { call: ToolCall; failure: EventFailure },
): void {
  const { message, timedOut } = failure;
  const lost = lostMessage(call.name, message);
  if (toolFor(told, call)?.effect === 'once') return unknown(told, said, { call, message: lost });
  if (!timedOut) {
    return settle(told, failedCall(call, { type: 'tool_error', message }), said.at);
  }
  settle(told, lostCall(call, lost), said.at);
}

/** A tool's activity was cancelled; the batch is answered when everything has stopped. */
export function callBrokenOff(told: ProjectionState, call: ToolCall): void {
  const tool = toolFor(told, call);
  if (tool === undefined) return;
  const result = cancelledCall(call, tool);
  // `resume` breaks off a probe, and nothing but the probe; the block that it had shows that it was one.
  if (told.blocked.has(call.id)) told.brokenProbes.set(call.id, result);
  else tell(told, { type: 'call-finished', result });
}

/** The run went on without these calls, so they were given up. */
export function callsGivenUp(told: ProjectionState, at: number): void {
  for (const result of told.notStarted.values()) settle(told, result, at);
  told.notStarted.clear();
}

/** A person settled a call whose outcome was unknown. */
export function callResolved(told: ProjectionState, fact: Said & { readonly input: unknown }): void {
  if (!isObject(fact.input) || told.state === null) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const resolution = fact.input as unknown as Resolution;
  told.blocked.delete(resolution.call);
  const call = told.state.turn.batch?.calls.find(({ id }) => id === resolution.call);
  if (call === undefined) return;
  const tool = toolFor(told, call);
  const looked = safetyResult(told, call, resolution);
  const result = looked === undefined ? tool && resolvedCall(call, tool, resolution) : looked;
  if (result) settle(told, result, fact.at);
}

/** A person accepted a tool in the form that it has now. */
export function toolAccepted(told: ProjectionState, { input }: { readonly input: unknown }): void {
  if (!isObject(input) || input['as'] !== 'accept' || told.state === null) return;
  const asked = told.state.turn.batch?.calls.find(({ id }) => id === input['call']);
  if (asked === undefined) return;
  const definition = textField(input, 'definition');
  tell(told, { type: 'tool-accepted', tool: asked.name, definition });
}

export function toolFor(told: ProjectionState, call: ToolCall): ToolDefinition | undefined {
  return told.state === null ? undefined : findTool(told.state, call.name);
}

function unknown(
  told: ProjectionState,
  said: Said,
  { call, message }: { call: ToolCall; message: string },
): void {
  told.blocked.set(call.id, { reason: 'outcome_unknown', message, since: said.id });
}

/** A call has its result; where it was the batch's last one, all of them are said, as by the loop. */
export function settle(told: ProjectionState, result: CallResult, at: number): void {
  told.blocked.delete(result.id);
  told.notStarted.delete(result.id);
  told.brokenProbes.delete(result.id);
  tell(told, { type: 'call-finished', result });
  if (callsRunning(told)) return;
  if (told.cancelRequested || told.cancelTurnRequested) interrupt(told, at);
  else tell(told, { type: 'calls-finished', at });
}
