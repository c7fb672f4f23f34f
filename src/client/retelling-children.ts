import { cancelledCall } from '../core/call-results.js';
import { childResult } from '../core/child.js';
import { isObject } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import type { Outcome } from '../core/outcome.js';
import { settle, toolFor } from './retelling-calls.js';
import type { FactOf, Retelling } from './retelling-state.js';
import { interrupt } from './retelling-turns.js';

/** An agent that was called works; shown among the calls in flight. */
export function childStarted(told: Retelling, fact: FactOf<'child-started'>): void {
  const call = callIn(told, fact.call);
  const { id, at, child } = fact;
  const summary = child;
  told.inFlight.set(id, { activity: 'agent', activityId: '', summary, call, input: {}, at });
}

export function childEnded(told: Retelling, fact: FactOf<'child-ended'>): void {
  const call = callIn(told, fact.call);
  for (const [id, flying] of told.inFlight) {
    if (flying.activity === 'agent' && flying.call?.id === fact.call) told.inFlight.delete(id);
  }
  const tool = call && toolFor(told, call);
  if (call === null || !tool) return;
  const result = childResult(call, { outcome: outcomeIn(fact.result), message: fact.message });
  const withTurn = told.cancelRequested || told.cancelTurnRequested;
  if (!fact.cancelled || !withTurn) return settle(told, result, fact.at);
  const { usage } = result;
  told.results.set(call.id, { ...cancelledCall(call, tool), ...(usage && { usage }) });
  if (![...told.inFlight.values()].some((flying) => flying.call !== null)) interrupt(told, fact.at);
}

function callIn(told: Retelling, id: string): ToolCall | null {
  return told.state?.turn.batch?.calls.find((call) => call.id === id) ?? null;
}

function outcomeIn(result: unknown): Outcome | null {
  const fits = isObject(result) && typeof result['status'] === 'string';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by a run of ours
  return fits ? (result as unknown as Outcome) : null;
}
