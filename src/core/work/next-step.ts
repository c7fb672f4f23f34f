import { findTool } from '../calls/batch.js';
import { getInterruption } from './interruption.js';
import type { RunState } from '../state.js';
import { openCallById } from '../turn.js';
import { WORK, type Block, type Flight, type Work } from './work.js';

/** The next step of work that is under way. */
export type WorkStep =
  /** `block` is the reason for a probe and for a check. */
  | {
      readonly type: 'start';
      readonly as: Exclude<Flight, 'child' | 'follow' | 'decide'>;
      readonly block?: Block;
    }
  /** Wait until the state changes or until this Unix time in ms; null: no time. */
  | { readonly type: 'wait'; readonly until: number | null }
  /** Stop, because the run is interrupted. */
  | { readonly type: 'stop' };

/** Returns the next step of work that is under way. `now`: Unix time in ms. Pure. */
export function nextWorkStep(state: RunState, work: Work, now: number): WorkStep {
  if (work.phase === 'in-flight') return { type: 'wait', until: null };
  if (getInterruption(state) !== null) return { type: 'stop' };
  if (work.phase === 'asking') return { type: 'wait', until: null };
  const { block, startAt = 0 } = work;
  if (block === undefined) {
    if (startAt > now) return { type: 'wait', until: startAt };
    if (work.unknown !== undefined) return { type: 'start', as: 'verify' };
    return state.paused ? { type: 'wait', until: null } : { type: 'start', as: 'attempt' };
  }
  if (block.until > now) return { type: 'wait', until: block.until };
  if (block.blob !== undefined) return { type: 'start', as: 'check', block };
  if (state.paused) return { type: 'wait', until: null };
  return { type: 'start', as: probeOf(state, work), block };
}

function probeOf(state: RunState, { name, unknown, found }: Work): 'verify' | 'find' | 'probe' {
  if (unknown !== undefined) return 'verify';
  return isCall(state, name) && !found ? 'find' : 'probe';
}

function isCall(state: RunState, name: string): boolean {
  return openCallById(state, name) !== undefined;
}

/**
 * Whether `resume` or the end of the segment may cancel the work in flight, because it has not
 * begun to act.
 */
export function isCancelable(state: RunState, work: Work): boolean {
  if (work.phase !== 'in-flight') return false;
  if (work.as === 'find' || work.as === 'check') return true;
  return work.as === 'probe' && !isOnce(state, work.name);
}

/** Whether the work belongs to a call that may be executed only once. */
export function isOnce(state: RunState, name: string): boolean {
  const call = openCallById(state, name);
  return call !== undefined && findTool(state, call.name)?.effect === 'once';
}

/**
 * Whether a new segment can continue this work: nothing in flight would be lost, and it holds no
 * paid reply, because a message could still join that reply's prompt.
 */
export function canBeCarried(state: RunState, work: Work): boolean {
  if (work.name === WORK.archive || work.name === WORK.fork || work.paid !== undefined)
    return false;
  if (work.phase === 'asking') return true;
  if (work.unknown !== undefined || work.startAt !== undefined) return false;
  return work.phase === 'waiting' || isCancelable(state, work);
}

/** Whether a new segment can continue all work that is under way. */
export function canCarryAll(state: RunState): boolean {
  return state.work.every((work) => canBeCarried(state, work));
}
