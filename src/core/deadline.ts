import { inTurn, type RunState } from './state.js';

export interface Deadline {
  /** Unix time in ms. */
  readonly at: number;
  readonly of: 'turn' | 'run';
}

/** The nearest moment at which a wall time is over; null where none is set. */
export function deadlineOf(state: RunState): Deadline | null {
  const { turn, run } = state.config.limits;
  const turnAt = inTurn(state) ? state.turn.startedAt + (turn.wallMs ?? Infinity) : Infinity;
  const told = state.ending === 'wallMs';
  const runAt = told ? Infinity : state.startedAt + (run.wallMs ?? Infinity);
  if (Math.min(turnAt, runAt) === Infinity) return null;
  // A turn that has been told once is not told again: what follows is its closing call.
  if (state.turn.deadlineReached && turnAt <= runAt)
    return runAt === Infinity ? null : { at: runAt, of: 'run' };
  return runAt <= turnAt ? { at: runAt, of: 'run' } : { at: turnAt, of: 'turn' };
}
