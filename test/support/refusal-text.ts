import { askRefusal } from '../../src/core/run/ask.js';
import type { Ask } from '../../src/core/input/inbox.js';
import type { RunState } from '../../src/core/state/state.js';

/** Returns why a run refuses a message at time 0, as text; null if it accepts it. */
export function refusalText(state: RunState, ask: Ask, id = 'm'): string | null {
  return askRefusal(state, ask, { id, now: 0 })?.message ?? null;
}
