import type { Interruption, TurnInterruption } from '../turn.js';
import type { RunState } from '../state.js';

/** Ordered from the weakest to the strongest. */
const STRENGTH: readonly TurnInterruption[] = ['wallMs', 'cancelTurn'];

/**
 * Returns the interruption of the turn under way; null if there is none. A cancellation of the run
 * stays in effect.
 */
export function getInterruption({ ending, turn }: RunState): Interruption | null {
  return ending === 'cancelled' ? 'cancel' : (turn.interruption ?? null);
}

/** Returns the stronger of two interruptions: a weaker one never replaces it. */
export function stronger(
  one: TurnInterruption | undefined,
  other: TurnInterruption,
): TurnInterruption {
  return one !== undefined && STRENGTH.indexOf(one) >= STRENGTH.indexOf(other) ? one : other;
}
