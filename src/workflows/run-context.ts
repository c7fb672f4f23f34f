import { CancellationScope } from '@temporalio/workflow';
import type { Resolution } from '../core/calls/call-result.js';
import type { Interruption } from '../core/events.js';
import type { RunInput } from '../core/input/input.js';
import { apply, type Run } from '../core/loop.js';
import type { Action } from '../core/next-action.js';
import type { Outcome } from '../core/outcome.js';
import type { RunState } from '../core/state.js';
import type { Blocked, Pending } from '../core/status.js';
import type { DeferredWork } from './blocked-work.js';

/** What the workflow holds beside the run's state: the work in flight and the decisions about it. */
export interface RunContext extends Run {
  readonly input: RunInput;
  state: RunState;
  /** Call id, or the name of other work such as `model`, to a line that describes it for people. */
  readonly doing: Map<string, string>;
  /** Name of blocked work to the reason. */
  readonly blocked: Map<string, Blocked>;
  /** Call id to the decision that a person has to make about it. */
  readonly pending: Map<string, Pending>;
  /** Call id to the decision that a person has made. */
  readonly resolutions: Map<string, Resolution>;
  /** Counts `resume`: blocked work compares it with an earlier count. */
  resumes: number;
  interruption: Interruption | null;
  /**
   * The scope of all work in flight; an interruption cancels it. All calls share one scope, because a
   * scope per call makes replay slower.
   */
  scope: CancellationScope;
  /** The scopes of probes; `resume` cancels them, so that the work is attempted at once. */
  readonly probes: Set<CancellationScope>;
  /** The scope of the deadline timer; null while no deadline is set. */
  deadlineTimer: CancellationScope | null;
  /** What the run waits for between steps and turns; null while it works. */
  awaiting: Action['type'] | null;
  /** Number of `outcome` updates in progress; all of them are released before the segment ends. */
  waiters: number;
  /** The segment ends: `outcome` updates answer `pending`. */
  leaving: boolean;
  /** A segment that could not end is tried again from this step, or from this Unix time in ms. */
  stayUntil: { readonly step: number; readonly at: number };
  /** Names of blocked work that waits where it can be deferred to the next segment. */
  readonly deferrable: Set<string>;
  /** Blocked work that was deferred, by name, until this segment or the next one takes it up. */
  readonly deferred: Map<string, DeferredWork>;
  /** The outcome of the whole run; null until it has ended. */
  ended: Outcome | null;
  /** The status that the search attributes show. */
  shown: string;
  /** Publishes the status; called after each change that people can see. */
  changed: () => void;
}

/** Creates the context of a segment. `shown`: the status that the search attributes show. */
export function createRunContext(
  input: RunInput,
  { state, shown }: { state: RunState; shown: string },
): RunContext {
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
    deadlineTimer: null,
    awaiting: null,
    waiters: 0,
    leaving: false,
    stayUntil: { step: 0, at: 0 },
    deferrable: new Set(),
    deferred: new Map(),
    ended: null,
    shown,
    changed: () => undefined,
  };
}

/** From the weakest to the strongest. */
const STRENGTH: readonly Interruption[] = ['wallMs', 'cancelTurn', 'cancel'];

/** Cancels the work in flight. A stronger interruption replaces a weaker one, never the reverse. */
export function interrupt(run: RunContext, by: Interruption): void {
  const { interruption } = run;
  if (interruption === null || STRENGTH.indexOf(by) > STRENGTH.indexOf(interruption)) {
    run.interruption = by;
  }
  if (by === 'cancel') apply(run, { type: 'ending', by: 'cancelled' });
  run.scope.cancel();
}

/**
 * Returns the interruption, or null, and clears it so that new work can start. A cancel of the whole
 * run is not cleared.
 */
export function takeInterruption(run: RunContext): Interruption | null {
  const by = run.interruption;
  if (by !== null && by !== 'cancel') {
    run.interruption = null;
    run.scope = new CancellationScope();
  }
  return by;
}

/** Runs work that an interruption cancels. The loop itself is never canceled. */
export function inFlight<T>(run: RunContext, work: () => Promise<T>): Promise<T> {
  return run.scope.run(work);
}

/** Waits for `wait`. Returns the interruption that canceled the wait, or null. */
export async function unlessInterrupted(
  run: RunContext,
  wait: () => Promise<unknown>,
): Promise<Interruption | null> {
  try {
    await inFlight(run, wait);
    return null;
  } catch (error) {
    const by = takeInterruption(run);
    if (by === null) throw error;
    return by;
  }
}

/** Resumes a paused run, and attempts all blocked work at once. */
export function resume(run: RunContext): void {
  if (run.state.paused) apply(run, { type: 'paused', paused: false });
  retryBlocked(run);
}

/** Attempts all blocked work at once. */
export function retryBlocked(run: RunContext): void {
  run.resumes += 1;
  for (const probe of run.probes) probe.cancel();
}
