import { CancellationScope } from '@temporalio/workflow';
import type { Resolution } from '../core/calls/call-results.js';
import type { Interruption } from '../core/events.js';
import type { RunInput } from '../core/input/input.js';
import { apply, type Run } from '../core/loop.js';
import type { Action } from '../core/next-action.js';
import type { Outcome } from '../core/outcome.js';
import type { RunState } from '../core/state.js';
import type { Blocked, Pending } from '../core/status.js';
import type { LeftWork } from './standing.js';

/** What a run holds beside its state: what is in flight and what people have said meanwhile. */
export interface Session extends Run {
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
  /** The deadline's timer. */
  clock: CancellationScope | null;
  /** What the run waits for between its steps and turns. */
  awaiting: Action['type'] | null;
  /** Who waits for a turn's outcome; all are let go before the segment ends. */
  waiters: number;
  leaving: boolean;
  /** A segment that could not be left is tried to be left again from this step, or this time, on. */
  stayUntil: { readonly step: number; readonly at: number };
  /** By the name of the work: blocked, and at a point where it can be left for a new segment. */
  readonly still: Set<string>;
  /** Blocked work that was left, until it is taken up again in this segment or the next. */
  readonly left: Map<string, LeftWork>;
  /** The run's own end. */
  ended: Outcome | null;
  /** The status that the search attributes show. */
  shown: string;
  /** Told when something that people see has changed. */
  changed: () => void;
}

export function createSession(
  input: RunInput,
  { state, shown }: { state: RunState; shown: string },
): Session {
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
    clock: null,
    awaiting: null,
    waiters: 0,
    leaving: false,
    stayUntil: { step: 0, at: 0 },
    still: new Set(),
    left: new Map(),
    ended: null,
    shown,
    changed: () => undefined,
  };
}

const RANK: readonly Interruption[] = ['wallMs', 'cancelTurn', 'cancel'];

/** Breaks off the work in flight. A cancel of the run outranks all else and is never taken back. */
export function interrupt(session: Session, by: Interruption): void {
  const { interruption } = session;
  if (interruption === null || RANK.indexOf(by) > RANK.indexOf(interruption)) {
    session.interruption = by;
  }
  if (by === 'cancel') apply(session, { type: 'ending', by: 'cancelled' });
  session.scope.cancel();
}

/** Takes note of an interruption; but for the run's own cancel it is spent by it, so that work can follow. */
export function takeInterruption(session: Session): Interruption | null {
  const by = session.interruption;
  if (by !== null && by !== 'cancel') {
    session.interruption = null;
    session.scope = new CancellationScope();
  }
  return by;
}

/** Runs work that an interruption cancels. The loop around it never is. */
export function inFlight<T>(session: Session, work: () => Promise<T>): Promise<T> {
  return session.scope.run(work);
}

/** Waits for what an interruption may break off. @returns by what it was */
export async function unlessInterrupted(
  session: Session,
  wait: () => Promise<unknown>,
): Promise<Interruption | null> {
  try {
    await inFlight(session, wait);
    return null;
  } catch (error) {
    const by = takeInterruption(session);
    if (by === null) throw error;
    return by;
  }
}

export function resume(session: Session): void {
  if (session.state.paused) apply(session, { type: 'paused', paused: false });
  tryAgain(session);
}

/** What is blocked is tried again at once. */
export function tryAgain(session: Session): void {
  session.resumes += 1;
  for (const probe of session.probes) probe.cancel();
}
