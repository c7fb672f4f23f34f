import type { Projection } from '../../history/projection.js';
import { standingOf } from '../../history/standing.js';
import type { Palette } from '../format/output.js';
import { clock } from '../format/format-time.js';

/** Tells what a run has come to wait for, one line each. */
export type StandingTeller = (view: Projection) => readonly string[];

/**
 * A teller remembers what it has told: ask it with each view of one run, in order. `resume`: what
 * to type for a run that is paused; null where that is told otherwise.
 */
export function createStandingTeller(paint: Palette, resume: string | null): StandingTeller {
  let paused = false;
  let toldUntil = 0;
  return (view) => {
    const { state } = view;
    if (state === null || view.ended !== null) return [];
    const lines: string[] = [];
    if (state.paused !== paused) {
      paused = state.paused;
      lines.push(paint.yellow(paused ? pausedText(view) : 'it goes on'));
      if (paused && resume !== null) lines.push(`Let it go on with: ${resume}`);
    }
    const standing = standingOf(view);
    if (standing?.type === 'time' && standing.until !== toldUntil) {
      toldUntil = standing.until;
      lines.push(`waiting until ${clock(toldUntil)}; a message wakes it`);
    }
    return lines;
  };
}

function pausedText({ inFlight }: Projection): string {
  const rest = inFlight.size === 0 ? '' : 'what is in flight ends, ';
  return `paused: ${rest}nothing more is started`;
}
