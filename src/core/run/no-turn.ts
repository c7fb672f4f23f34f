import type { Ending, RunState } from '../state/state.js';
import { getOutcome } from '../state/turn.js';
import type { Outcome } from '../transcript/outcome.js';
import type { Refusal } from './ask.js';

/** Returns why an open run refuses to cancel a turn while none is under way, with what to do instead. */
export function noTurnRefusal(state: RunState): Refusal {
  const message = `no turn is under way: ${betweenTurnsText(state)}`;
  // Readers see the end before the workflow has ended.
  if (state.ending !== null) return { message, reason: 'run_ended' };
  if (state.inbox.waiting.length === 0) {
    return { message: `${message}; send it one, close the run, or cancel it as a whole` };
  }
  const fix = state.paused ? 'resume it' : 'try again';
  return { message: `${message}; ${fix}, or cancel the run as a whole` };
}

/** Returns what an open run does between two turns, and how the last one ended. */
export function betweenTurnsText(state: RunState): string {
  if (state.ending !== null) return `the run ${ENDINGS[state.ending]}`;
  const { turn, paused } = state;
  const outcome = getOutcome(state);
  const last = outcome === null ? '' : `turn ${turn.number} ${ENDS[outcome.status]}, and `;
  if (state.inbox.waiting.length > 0) {
    return `${last}the run ${paused ? 'is paused before' : 'is about to begin'} the next one`;
  }
  return `${last}the run ${paused ? 'is paused and ' : ''}waits for a message`;
}

const ENDINGS: Readonly<Record<Ending, string>> = {
  closed: 'is closed',
  cancelled: 'is canceled already',
  wallMs: 'has used up its time',
};

const ENDS: Readonly<Record<Outcome['status'], string>> = {
  completed: 'has ended',
  stopped: 'was stopped',
  cancelled: 'is canceled already',
  failed: 'has failed',
};
