import type { RunEvent } from '../events.js';
import { expired } from './expire.js';
import { interruptionOf } from '../work/interruption.js';
import { nextDeadline } from '../limits.js';
import { type RunState } from '../state.js';
import { inTurn } from '../turn.js';

/** Returns the events of a deadline that has passed by now (Unix time in ms). */
export function passedDeadline(state: RunState, now: number): readonly RunEvent[] {
  return [...expired(state, now), ...passedLimit(state, now)];
}

function passedLimit(state: RunState, now: number): readonly RunEvent[] {
  const deadline = nextDeadline(state);
  if (deadline === null || deadline.at > now) return [];
  const isOfRun = deadline.of === 'run';
  // The interruption of a turn's deadline is requested once, and applied when its work has stopped.
  if (!isOfRun && interruptionOf(state) !== null) return [];
  return [
    ...(isOfRun ? [{ type: 'ending', by: 'wallMs' } as const] : []),
    ...(inTurn(state) ? [{ type: 'interruption-requested', by: 'wallMs' } as const] : []),
  ];
}
