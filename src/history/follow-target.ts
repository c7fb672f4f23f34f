import type { EndedTurn } from '../core/state.js';
import { inTurn } from '../core/state.js';
import type { Projection } from './projection.js';

/** How far a run is followed: to its own end, or to that of one turn. */
export type FollowTarget = 'end' | { readonly turn: number };

export type Reached =
  | { readonly type: 'run-ended' }
  | { readonly type: 'turn-ended'; readonly ended: EndedTurn }
  /** The turn ended so long ago that the run does not remember how. */
  | { readonly type: 'forgotten'; readonly turn: number };

/** What somebody who follows a run up to there has come to; null: it goes on. */
export function reached(view: Projection, until: FollowTarget): Reached | null {
  const over = until === 'end' ? null : endOfTurn(view, until.turn);
  if (over !== null) return over;
  // A run that ends before a turn has begun ends that turn, too.
  return view.ended === null || view.ended.how === 'continued' ? null : { type: 'run-ended' };
}

function endOfTurn({ turns, state }: Projection, turn: number): Reached | null {
  const ended = [...turns, ...(state?.recent ?? [])].find((over) => over.turn === turn);
  if (ended !== undefined) return { type: 'turn-ended', ended };
  return (state?.turn.number ?? 0) > turn ? { type: 'forgotten', turn } : null;
}

/**
 * What there is to follow in a run as it stands: the turn under way, else the next one, else the run's
 * end where that is near. Null for an open run that waits for a message.
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
