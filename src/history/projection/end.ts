import { runCancelled } from '../../core/make-outcome.js';
import { isObject } from '../../core/json.js';
import type { Outcome } from '../../core/outcome.js';
import type { RunState } from '../../core/state.js';
import { isLoaded, unloadedConfig } from '../../core/definition/initial-config.js';
import { carriedState } from './carried-state.js';
import { loaded } from './beginning.js';
import { outcomeOf, type EndedEvent, type ProjectionState } from './state.js';
import { interrupt } from './emit.js';
import { advanceTurns } from './turns.js';

/** Applies the end of a segment: the end of the run, or what it hands to the next segment. */
export function ended(projection: ProjectionState, event: EndedEvent): void {
  // A run that is canceled before its agent is loaded has a turn nevertheless.
  if (event.how === 'cancelled' && projection.state === null && projection.input !== null) {
    loaded(projection, unloadedConfig(projection.input.agent), event.at);
    advanceTurns(projection, event.at);
  }
  projection.ended = event;
  projection.inFlight.clear();
  projection.blocked.clear();
  if (event.how === 'cancelled') interrupt(projection, event.at);
  if (isObject(event.carried)) return continuedInNextSegment(projection, event.carried);
  const recorded = outcomeOf(event);
  const { state } = projection;
  projection.outcome = recorded ?? (state === null ? null : outcomeWithoutRecord(state, event));
  // The outcome of an open run is not the outcome of its last turn.
  if (state !== null && !state.open && recorded !== null) {
    projection.state = { ...state, turn: { ...state.turn, outcome: recorded } };
  }
}

/** The run continues in a new segment; the carried state shows how far this one came. */
function continuedInNextSegment(
  projection: ProjectionState,
  carried: Record<string, unknown>,
): void {
  const state = carriedState(carried);
  if (state === null || !isLoaded(state)) return;
  projection.state = state;
  const { next, messages } = projection.state.transcript;
  const known = new Map(
    [...projection.messages, ...messages].map((message) => [message.n, message]),
  );
  const own = [...known.values()].filter(({ n }) => n < next);
  projection.messages.splice(0, Infinity, ...own.toSorted((one, other) => one.n - other.n));
}

/** A canceled workflow has no result in its history. */
function outcomeWithoutRecord(state: RunState, { how }: EndedEvent): Outcome | null {
  if (how !== 'cancelled') return null;
  return state.open ? runCancelled(state) : (state.turn.outcome ?? runCancelled(state));
}
