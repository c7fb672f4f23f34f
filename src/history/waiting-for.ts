import { nextAction } from '../core/next-action.js';
import type { Projection } from './projection.js';

/** What a living run waits for. */
export type Waiting =
  | { readonly type: 'message' }
  /** For `resume`. */
  | { readonly type: 'paused' }
  /** `until`: Unix time in ms. */
  | { readonly type: 'time'; readonly until: number };

/** What the run waits for, blocks apart; null while it works, and before it has begun. */
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
