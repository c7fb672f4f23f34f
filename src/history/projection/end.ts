import { runCancelled } from '../../core/make-outcome.js';
import { isObject } from '../../core/json.js';
import type { Outcome } from '../../core/outcome.js';
import type { RunState } from '../../core/state.js';
import { isLoaded, unloadedConfig } from '../../core/definition/initial-config.js';
import { carriedState } from './carried-state.js';
import { loaded } from './beginning.js';
import { outcomeOf, type EndedEvent, type ProjectionState } from './state.js';
import { interrupt } from './emit.js';
import { windUp } from './turns.js';

/** Applies the end of a segment: the end of the run, or what it hands to the next segment. */
export function ended(told: ProjectionState, fact: EndedEvent): void {
  // A run that is cancelled before its agent is known has a turn all the same.
  if (fact.how === 'cancelled' && told.state === null && told.input !== null) {
    loaded(told, unloadedConfig(told.input.agent), fact.at);
    windUp(told, fact.at);
  }
  told.ended = fact;
  told.inFlight.clear();
  told.blocked.clear();
  if (fact.how === 'cancelled') interrupt(told, fact.at);
  if (isObject(fact.carried)) return handedOver(told, fact.carried);
  const recorded = outcomeOf(fact);
  const { state } = told;
  told.outcome = recorded ?? (state === null ? null : unrecorded(state, fact));
  // An open run's own end is not that of its last turn.
  if (state !== null && !state.open && recorded !== null) {
    told.state = { ...state, turn: { ...state.turn, outcome: recorded } };
  }
}

/** Where the run goes on elsewhere, what it takes along says how far it came. */
function handedOver(told: ProjectionState, carried: Record<string, unknown>): void {
  const state = carriedState(carried);
  if (state === null || !isLoaded(state)) return;
  told.state = state;
  const { next, messages } = told.state.transcript;
  const known = new Map([...told.said, ...messages].map((message) => [message.n, message]));
  const said = [...known.values()].filter(({ n }) => n < next);
  told.said.splice(0, Infinity, ...said.toSorted((one, other) => one.n - other.n));
}

/** A cancelled workflow has no result in its history. */
function unrecorded(state: RunState, { how }: EndedEvent): Outcome | null {
  if (how !== 'cancelled') return null;
  return state.open ? runCancelled(state) : (state.turn.outcome ?? runCancelled(state));
}
