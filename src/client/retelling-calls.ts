import { notExecuted, toolOf } from '../core/batch.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  refusedCall,
  resolvedCall,
  succeededCall,
  type Resolution,
} from '../core/call-results.js';
import type { CallResult } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import { isObject, textOf } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import { nextAction } from '../core/next-action.js';
import type { HistoryFact } from './history-facts.js';
import type { FactFailure } from './payloads.js';
import type { Retelling } from './retelling-state.js';
import { safetyResult } from './retelling-safety.js';
import { tell } from './retelling-tell.js';

/** The event that says it, as far as its place in the history matters. */
type Said = Pick<HistoryFact, 'id' | 'at'>;

/** A tool's activity ended in order, with whatever result. */
export function callReturned(
  told: Retelling,
  said: Said,
  { call, result }: { call: ToolCall; result: Record<string, unknown> },
): void {
  const tool = toolFor(told, call);
  if (tool === undefined) return;
  if (result['ok'] === 'unknown') {
    return unknown(told, said, { call, message: textOf(result, 'message') });
  }
  if (result['ok'] === 'not_started') {
    told.notStarted.set(call.id, notExecuted(call, textOf(result, 'message')));
    return;
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own runTool
  const success = result as unknown as Parameters<typeof succeededCall>[2];
  const settled =
    result['ok'] === true
      ? succeededCall(call, tool, success)
      : refusedCall(call, textOf(result, 'text'));
  settle(told, settled, said.at);
}

/** A tool's activity failed for good, or was lost. */
export function callFailed(
  told: Retelling,
  said: Said,
  { call, failure }: { call: ToolCall; failure: FactFailure },
): void {
  const { message, timedOut } = failure;
  const lost = lostMessage(call.name, message);
  if (toolFor(told, call)?.effect === 'once') return unknown(told, said, { call, message: lost });
  if (!timedOut) {
    return settle(told, failedCall(call, { type: 'tool_error', message }), said.at);
  }
  settle(told, lostCall(call, lost), said.at);
}

/** A tool's activity was cancelled; the loop answers the call when everything has stopped. */
export function callBrokenOff(told: Retelling, call: ToolCall): void {
  const tool = toolFor(told, call);
  if (tool !== undefined) told.results.set(call.id, cancelledCall(call, tool));
}

/** The run went on without these calls, so they were given up. */
export function callsGivenUp(told: Retelling, at: number): void {
  for (const result of told.notStarted.values()) settle(told, result, at);
  told.notStarted.clear();
}

/** A person settled a call whose outcome was unknown. */
export function callResolved(told: Retelling, fact: Said & { readonly input: unknown }): void {
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
export function toolAccepted(told: Retelling, { input }: { readonly input: unknown }): void {
  if (!isObject(input) || input['as'] !== 'accept' || told.state === null) return;
  const asked = told.state.turn.batch?.calls.find(({ id }) => id === input['call']);
  if (asked === undefined) return;
  const definition = textOf(input, 'definition');
  tell(told, { type: 'tool-accepted', tool: asked.name, definition });
}

export function toolFor(told: Retelling, call: ToolCall): ToolDefinition | undefined {
  return told.state === null ? undefined : toolOf(told.state, call.name);
}

function unknown(
  told: Retelling,
  said: Said,
  { call, message }: { call: ToolCall; message: string },
): void {
  told.blocked.set(call.id, { reason: 'outcome_unknown', message, since: said.id });
}

/** Keeps a result until all that the loop waits for are there, as the loop does. */
export function settle(told: Retelling, result: CallResult, at: number): void {
  told.blocked.delete(result.id);
  told.notStarted.delete(result.id);
  told.results.set(result.id, result);
  if (told.state === null) return;
  // A pause lets what is in flight end, and what it brought counts at once.
  const action = nextAction({ ...told.state, paused: false });
  if (action.type !== 'run-calls') return;
  const results = action.calls.flatMap(({ id }) => told.results.get(id) ?? []);
  if (results.length < action.calls.length) return;
  for (const { id } of results) told.results.delete(id);
  tell(told, { type: 'calls-finished', results, at });
}
