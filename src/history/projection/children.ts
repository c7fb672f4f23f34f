import { cancelledCall } from '../../core/calls/call-result.js';
import { nameInCalledId } from '../../core/calls/idempotency.js';
import { childResult, type ChildEnd } from '../../core/calls/child.js';
import { textField } from '../../core/json.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { isOutcome, type FollowRunResult } from '../../core/guards/recorded.js';
import { finishCall, toolFor } from './calls.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';
import { hasCallsInFlight, interrupt, emit } from './emit.js';

/** A called agent has started. Its run is in flight like a call. */
export function childStarted(projection: ProjectionState, event: EventOf<'child-started'>): void {
  const call = callIn(projection, event.call);
  const { id, at, child } = event;
  const summary = child;
  projection.inFlight.set(id, { activity: 'agent', activityId: '', summary, call, input: {}, at });
}

/** The child run has ended, or the server refused to start it. */
export function removeChild(projection: ProjectionState, call: string): void {
  for (const [id, inFlight] of projection.inFlight) {
    if (inFlight.activity === 'agent' && inFlight.call?.id === call) projection.inFlight.delete(id);
  }
}

export function childEnded(projection: ProjectionState, event: EventOf<'child-ended'>): void {
  removeChild(projection, event.call);
  const outcome = isOutcome(event.result) ? event.result : null;
  finishAgentCall(projection, event, { outcome, message: event.message });
}

/** An activity followed a run that existed before. Without an outcome, the agent runs again. */
export function childFollowed(
  projection: ProjectionState,
  { done, result, at }: { done: InFlight; result: FollowRunResult; at: number },
): void {
  if (result.type === 'ended') {
    const { outcome } = result;
    const event = { call: followed(done), cancelled: outcome.status === 'cancelled', at };
    finishAgentCall(projection, event, { outcome, message: '' });
  } else if (result.type === 'other' && result.running) {
    childFollowFailed(projection, { done, message: 'Workflow execution already started', at });
  }
}

/** The run of a called agent cannot be followed, so its call fails with this message. */
export function childFollowFailed(
  projection: ProjectionState,
  { done, message, at }: { done: InFlight; message: string; at: number },
): void {
  finishAgentCall(
    projection,
    { call: followed(done), cancelled: false, at },
    { outcome: null, message },
  );
}

/** Returns the call that the followed run answers. */
function followed({ input }: InFlight): string {
  return nameInCalledId(textField(input, 'run'));
}

function finishAgentCall(
  projection: ProjectionState,
  event: Pick<EventOf<'child-ended'>, 'call' | 'cancelled' | 'at'>,
  end: ChildEnd,
): void {
  const call = callIn(projection, event.call);
  const tool = call && toolFor(projection, call);
  if (call === null || !tool) return;
  const result = childResult(call, end);
  const withTurn = projection.cancelRequested || projection.cancelTurnRequested;
  if (!event.cancelled || !withTurn) return finishCall(projection, result, event.at);
  const { usage } = result;
  const cancelled = { ...cancelledCall(call, tool), ...(usage && { usage }) };
  emit(projection, { type: 'call-finished', result: cancelled });
  if (!hasCallsInFlight(projection)) interrupt(projection, event.at);
}

function callIn(projection: ProjectionState, id: string): ToolCall | null {
  return projection.state?.turn.batch?.calls.find((call) => call.id === id) ?? null;
}
