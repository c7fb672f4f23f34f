import { nextAction } from '../core/next-action.js';
import type { Projection } from './projection.js';

/** The condition for which an open run waits. */
export type Waiting =
  | { readonly type: 'message' }
  /** The run is paused and waits for `resume`. */
  | { readonly type: 'paused' }
  /** `until`: Unix time in ms. */
  | { readonly type: 'time'; readonly until: number };

/**
 * Returns the condition for which a run waits, other than blocked work; null while it works and
 * before it starts.
 */
export function waitingFor({ state, inFlight, ended }: Projection): Waiting | null {
  if (state === null || ended !== null || inFlight.size > 0) return null;
  const action = nextAction(state);
  switch (action.type) {
    case 'await-message':
      return { type: 'message' };
    case 'await-resume':
      return { type: 'paused' };
    case 'await-time':
      return { type: 'time', until: action.until };
    default:
      return null;
  }
}
