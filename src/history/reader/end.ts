import { isLoaded } from '../../core/definition/initial-config.js';
import { isOutcome } from '../../core/guards/recorded.js';
import { runCancelled } from '../../core/make-outcome.js';
import type { Outcome } from '../../core/outcome.js';
import type { CarriedState } from '../../core/segments/migrations.js';
import { readCarriedState } from '../../core/segments/carried-state.js';
import { getOutcome } from '../../core/turn.js';
import type { RunState } from '../../core/state.js';
import { readStart, type Begun } from '../../core/segments/start.js';
import type { EndedEvent, EventOf, ReadRun } from './run-view.js';

/**
 * Returns the state that one segment carries over to the next. Null if there is none or it cannot
 * be read: a starter can pass any value, and a newer version may use another schema version.
 */
export function readCarried(carried: unknown): CarriedState | null {
  try {
    const read = readCarriedState(carried);
    return 'carried' in read ? read.carried : null;
  } catch {
    return null;
  }
}

/**
 * Returns the initial data of a segment; null if the run refuses it, or if a newer version wrote
 * it.
 */
export function readBegun({ start, ...args }: EventOf<'started'>): Begun | null {
  try {
    const read = readStart(start, args);
    return 'problem' in read ? null : read;
  } catch {
    return null;
  }
}

/** Returns the state that one segment carries over to the next; null if it cannot be read. */
export function carriedState(carried: unknown): RunState | null {
  return readCarried(carried)?.state ?? null;
}

/**
 * Returns the outcome that the workflow recorded, regardless of how it ended; null if it recorded
 * none.
 */
export function endOutcome({ result }: EndedEvent): Outcome | null {
  return isOutcome(result) ? result : null;
}

/** Applies the end of a segment: the end of the run, or the state for the next segment. */
export function endRun(run: ReadRun, event: EndedEvent): void {
  run.ended = event;
  run.inFlight.clear();
  const { state } = run;
  if (event.how === 'continued') {
    const carried = carriedState(event.carried);
    if (carried !== null && isLoaded(carried)) run.state = carried;
    return;
  }
  const recorded = endOutcome(event);
  run.outcome = recorded ?? (state === undefined ? null : outcomeWithoutRecord(state, event));
  // The outcome of an open run is not the outcome of its last turn.
  if (state !== undefined && !state.open && recorded !== null) {
    run.state = { ...state, turn: { ...state.turn, phase: { type: 'idle', outcome: recorded } } };
  }
}

/** A canceled workflow has no result in its history. */
function outcomeWithoutRecord(state: RunState, { how }: EndedEvent): Outcome | null {
  if (how !== 'cancelled') return null;
  return state.open ? runCancelled(state) : (getOutcome(state) ?? runCancelled(state));
}
