import { cancelledCall } from '../../core/calls/call-result.js';
import { nameInCalledId } from '../../core/calls/idempotency.js';
import { childResult, type ChildEnd } from '../../core/calls/child.js';
import { textField } from '../../core/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { isOutcome, type FollowRunResult } from '../../core/guards/recorded.js';
import { settle, toolFor } from './calls.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';
import { callsRunning, interrupt, tell } from './emit.js';

/** An agent that was called works; shown among the calls in flight. */
export function childStarted(told: ProjectionState, fact: EventOf<'child-started'>): void {
  const call = callIn(told, fact.call);
  const { id, at, child } = fact;
  const summary = child;
  told.inFlight.set(id, { activity: 'agent', activityId: '', summary, call, input: {}, at });
}

/** The child has ended, or the server refused to start it. */
export function childGone(told: ProjectionState, call: string): void {
  for (const [id, flying] of told.inFlight) {
    if (flying.activity === 'agent' && flying.call?.id === call) told.inFlight.delete(id);
  }
}

export function childEnded(told: ProjectionState, fact: EventOf<'child-ended'>): void {
  childGone(told, fact.call);
  const outcome = isOutcome(fact.result) ? fact.result : null;
  answered(told, fact, { outcome, message: fact.message });
}

/** An activity has followed a run that was there already; without an outcome the agent runs again. */
export function childFollowed(
  told: ProjectionState,
  { done, result, at }: { done: InFlight; result: FollowRunResult; at: number },
): void {
  if (result.type === 'ended') {
    const { outcome } = result;
    const fact = { call: followed(done), cancelled: outcome.status === 'cancelled', at };
    answered(told, fact, { outcome, message: '' });
  } else if (result.type === 'other' && result.running) {
    childNotFollowed(told, { done, message: 'Workflow execution already started', at });
  }
}

/** The run of a called agent cannot be followed: its call fails with this message. */
export function childNotFollowed(
  told: ProjectionState,
  { done, message, at }: { done: InFlight; message: string; at: number },
): void {
  answered(told, { call: followed(done), cancelled: false, at }, { outcome: null, message });
}

/** Returns the call that the followed run answers. */
function followed({ input }: InFlight): string {
  return nameInCalledId(textField(input, 'run'));
}

function answered(
  told: ProjectionState,
  fact: Pick<EventOf<'child-ended'>, 'call' | 'cancelled' | 'at'>,
  end: ChildEnd,
): void {
  const call = callIn(told, fact.call);
  const tool = call && toolFor(told, call);
  if (call === null || !tool) return;
  const result = childResult(call, end);
  const withTurn = told.cancelRequested || told.cancelTurnRequested;
  if (!fact.cancelled || !withTurn) return settle(told, result, fact.at);
  const { usage } = result;
  const cancelled = { ...cancelledCall(call, tool), ...(usage && { usage }) };
  tell(told, { type: 'call-finished', result: cancelled });
  if (!callsRunning(told)) interrupt(told, fact.at);
}

function callIn(told: ProjectionState, id: string): ToolCall | null {
  return told.state?.turn.batch?.calls.find((call) => call.id === id) ?? null;
}
