import type { FinishedTurn } from '../core/state.js';
import { inTurn } from '../core/turn.js';
import type { Projection } from './projection.js';

/** The end of following: that of the run, or that of one turn. */
export type FollowTarget = 'end' | { readonly turn: number };

export type Reached =
  | { readonly type: 'run-ended' }
  | { readonly type: 'turn-ended'; readonly ended: FinishedTurn }
  /** The turn ended so long ago that the run no longer has its outcome. */
  | { readonly type: 'forgotten'; readonly turn: number };

/** Returns how a run has reached the target; null while it has not. */
export function reached(view: Projection, target: FollowTarget): Reached | null {
  const turnEnd = target === 'end' ? null : endOfTurn(view, target.turn);
  if (turnEnd !== null) return turnEnd;
  // A run that ends before a turn begins also ends that turn.
  return view.ended === null || view.ended.how === 'continued' ? null : { type: 'run-ended' };
}

function endOfTurn({ turns, state }: Projection, turn: number): Reached | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((one) => one.turn === turn);
  if (ended !== undefined) return { type: 'turn-ended', ended };
  return (state?.turn.number ?? 0) > turn ? { type: 'forgotten', turn } : null;
}

/**
 * Returns the current target to follow in a run: the current turn, else the next one, else the end
 * of a run that is ending. Returns null for an open run that waits for a message.
 */
export function nextTarget(view: Projection): FollowTarget | null {
  const { state, input, cancelRequested } = view;
  if (state === null) return input?.open === true ? { turn: 1 } : 'end';
  if (!state.open) return 'end';
  if (inTurn(state)) return { turn: state.turn.number };
  if (cancelRequested || state.ending === 'cancelled') return 'end';
  const [next] = state.inbox.waiting;
  if (next !== undefined) return { turn: next.turn };
  return state.ending === null ? null : 'end';
}
