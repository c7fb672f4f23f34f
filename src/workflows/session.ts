import { CancellationScope, condition } from '@temporalio/workflow';
import type { Resolution } from '../core/call-results.js';
import type { Interruption } from '../core/events.js';
import type { RunInput } from '../core/input.js';
import type { RunState } from '../core/state.js';
import type { Blocked, Pending } from '../core/status.js';

/** What a run holds beside its state: what is in flight and what people have said meanwhile. */
export interface Session {
  readonly input: RunInput;
  state: RunState;
  /** Call id, or `model` → what is being done, for people. */
  readonly doing: Map<string, string>;
  /** Call id, or `model` → why it stands still. */
  readonly blocked: Map<string, Blocked>;
  readonly pending: Map<string, Pending>;
  readonly resolutions: Map<string, Resolution>;
  /** Counts `resume`: who waits compares. */
  resumes: number;
  interruption: Interruption | null;
  /** Of all work in flight; an interruption cancels it. One for many calls, for a scope is dear. */
  scope: CancellationScope;
  /** Of probes only: `resume` breaks them off, so that the call is made at once. */
  readonly probes: Set<CancellationScope>;
  /** Told when something that people see has changed. */
  changed: () => void;
}

export function createSession(input: RunInput, state: RunState): Session {
  return {
    input,
    state,
    doing: new Map(),
    blocked: new Map(),
    pending: new Map(),
    resolutions: new Map(),
    resumes: 0,
    interruption: null,
    scope: new CancellationScope(),
    probes: new Set(),
    changed: () => undefined,
  };
}

/** Breaks off the work in flight. A cancel outranks a deadline and is never taken back. */
export function interrupt(session: Session, by: Interruption): void {
  if (session.interruption !== 'cancel') session.interruption = by;
  session.scope.cancel();
}

/** Takes note of an interruption; a deadline is spent by it, so that a closing call can follow. */
export function takeInterruption(session: Session): Interruption | null {
  const by = session.interruption;
  if (by === 'wallMs') {
    session.interruption = null;
    session.scope = new CancellationScope();
  }
  return by;
}

/** Runs work that an interruption cancels. The loop around it never is. */
export function inFlight<T>(session: Session, work: () => Promise<T>): Promise<T> {
  return session.scope.run(work);
}

export function resume(session: Session): void {
  session.resumes += 1;
  for (const probe of session.probes) probe.cancel();
}

/**
 * Waits until somebody says `resume`, at most `waitMs`. `before`: the count when the failed attempt
 * began, so that a word said meanwhile is not lost. @returns whether somebody did
 */
export async function resumedSince(
  session: Session,
  before: number,
  waitMs: number,
): Promise<boolean> {
  return await inFlight(session, () => condition(() => session.resumes > before, waitMs));
}
