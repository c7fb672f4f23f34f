import { CancellationScope, patched, sleep, workflowInfo } from '@temporalio/workflow';
import type { RunInput } from '../core/input/input.js';
import type { ContextFields } from '../core/input/turn-context.js';
import { type Run, record } from '../core/interpret/loop.js';
import { askingWork } from '../core/requests/open-requests.js';
import { nextDeadline } from '../core/rules/limits.js';
import { type SegmentFacts, segmentFull } from '../core/run/carry.js';
import type { Fact } from '../core/run/events.js';
import { type Action, nextAction } from '../core/run/next-action.js';
import { getInterruption } from '../core/state/change.js';
import {
  NO_ACTIVITIES_PATCH,
  type RunState,
  SEMANTICS_PATCH,
  keepsEarlierMeaning,
} from '../core/state/state.js';
import { blocks, isUndo } from '../core/state/work.js';
import { MAX_DURABLE_MS } from '../core/text/text.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { hasActivity } from './activities.js';

/** The workflow's data in addition to the run's state: scopes, timers, and published values. */
export interface RunContext extends Run {
  readonly input: RunInput;
  state: RunState;
  /** A line for people about each piece of work, by call id or by a name such as `model`. */
  readonly doing: Map<string, string>;
  /**
   * The scope of all work in flight; an interruption cancels it. All calls share one scope, because
   * a scope per call makes replay slower.
   */
  scope: CancellationScope;
  /**
   * The scope of undos in flight, and of the checks of decisions about them, which do not belong to a turn: only a
   * cancellation of the whole run cancels it.
   */
  readonly apart: CancellationScope;
  /** The scope of the deadline timer; null while no deadline is set. */
  deadlineTimer: CancellationScope | null;
  /** Number of `outcome` updates in progress; all of them are released before the segment ends. */
  waiters: number;
  /** The segment ends: `outcome` updates answer `pending`. */
  leaving: boolean;
  /** The outcome of the whole run; null until it has ended. */
  ended: Outcome | null;
  /** The status that the search attributes show. */
  shown: string;
  /** The number of the latest turn whose end was reported; null for none. */
  reported: number | null;
  /** Publishes the status; called after each change that people can see. */
  readonly publishStatus: () => void;
  /** Publishes the open requests; called after each change of work that may affect them. */
  readonly publishRequests: () => void;
  /** The scope of the timer for the next request that expires; null while none does. */
  expiryTimer: { readonly at: number; readonly scope: CancellationScope } | null;
  /** Ids of the open requests that the memo has. */
  shownRequests: string;
  /** The most recently computed next action and its inputs; null before the first one. */
  last: LastAction | null;
  /** The starter has set the run's search attributes, so the namespace has them. */
  readonly hasAttributes: boolean;
  /** The segment has met a worker without activities. */
  hasNoActivities: boolean;
}

/** A next action, with the state and the moment in the history to which it belongs. */
interface LastAction {
  readonly state: RunState;
  /** Unix time in ms. */
  readonly now: number;
  readonly historyEvents: number;
  readonly action: Action;
}

interface ContextParts {
  readonly state: RunState;
  /** The status that the search attributes show; empty for none. */
  readonly shown: string;
  readonly hasAttributes: boolean;
  /** Publishes what people see of a run. */
  readonly publish: Readonly<Record<'status' | 'requests', (run: RunContext) => void>>;
}

/** Creates the context of a segment. */
export function createRunContext(
  input: RunInput,
  { state, shown, hasAttributes, publish }: ContextParts,
): RunContext {
  const run: RunContext = {
    input,
    state,
    doing: new Map(),
    scope: new CancellationScope(),
    apart: new CancellationScope(),
    deadlineTimer: null,
    waiters: 0,
    leaving: false,
    ended: null,
    shown,
    reported: null,
    publishStatus: () => publish.status(run),
    publishRequests: () => publish.requests(run),
    expiryTimer: null,
    shownRequests: '',
    last: null,
    hasAttributes,
    hasNoActivities: false,
  };
  return run;
}

/** Returns the context that the functions of the turn receive, as fields of an activity's input. */
export function contextFields({ state, input }: RunContext): ContextFields {
  const { contextBlob } = state.config;
  const { context } = input;
  const { context: turnContext } = state.turn;
  return {
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
    ...(turnContext && { turnContext }),
  };
}

/** A fact without its time. */
export type Observed<F = Fact> = F extends Fact ? Omit<F, 'at'> : never;

/**
 * Records the workflow's observation at the current time. A resulting interruption cancels the work
 * in flight, and a change of blocked work is published.
 */
export function recordNow(run: RunContext, observed: Observed): void {
  const before = run.state;
  record(run, { ...observed, ...patchedFor(run, observed), at: Date.now() });
  if (getInterruption(run.state) !== getInterruption(before)) cancelFlight(run);
  if (before.work === run.state.work) return;
  run.publishRequests();
  if (blocks(before).length > 0 || blocks(run.state).length > 0) run.publishStatus();
}

/**
 * Marks what arrives at the open requests of a run without `SEMANTICS`. Replay does not mark what
 * was recorded before, so that it keeps its meaning. Other runs need no marker in their history.
 */
function patchedFor({ state }: RunContext, { type }: Observed): { readonly patched?: true } {
  if (type !== 'update' && type !== 'signal') return {};
  if (!keepsEarlierMeaning(state, {}) || askingWork(state).length === 0) return {};
  return patched(SEMANTICS_PATCH) ? { patched: true } : {};
}

/**
 * Allows new work to start after an interruption of one turn. A cancellation of the whole run stays
 * in effect.
 */
export function renewScope(run: RunContext): void {
  if (getInterruption(run.state) === null && run.scope.consideredCancelled) {
    run.scope = new CancellationScope();
  }
}

/** Cancels what an interruption cancels. */
export function cancelFlight(run: RunContext): void {
  run.scope.cancel();
  if (run.state.ending === 'cancelled') run.apart.cancel();
}

/** Returns the scope of work by its name. */
export function scopeOf(run: RunContext, name: string): CancellationScope {
  // In a run of an earlier version, the interruption of a turn also cancels undos.
  return isUndo({ name }) && run.state.config.revised ? run.apart : run.scope;
}

/** Runs work that an interruption cancels. The loop itself is never canceled. `name`: that of the work. */
export function inFlight<T>(run: RunContext, work: () => Promise<T>, name = ''): Promise<T> {
  return scopeOf(run, name).run(work);
}

/** Waits for `wait`, or until an interruption cancels it. */
export async function unlessInterrupted(
  run: RunContext,
  wait: () => Promise<unknown>,
): Promise<void> {
  try {
    await inFlight(run, wait);
  } catch (error) {
    if (getInterruption(run.state) === null) throw error;
  }
}

/**
 * Starts the timer for the nearest deadline of the turn or the run, and replaces the previous
 * timer.
 */
export function startDeadlineTimer(run: RunContext): void {
  run.deadlineTimer?.cancel();
  run.deadlineTimer = null;
  const deadline = nextDeadline(run.state);
  if (deadline === null) return;
  const leftMs = deadline.at - Date.now();
  // The server refuses a longer timer, and no run lasts that long.
  if (!(leftMs <= MAX_DURABLE_MS)) return;
  const scope = new CancellationScope();
  run.deadlineTimer = scope;
  scope
    .run(async () => {
      await sleep(Math.max(1, leftMs));
      recordNow(run, { type: 'clock' });
    })
    .catch(() => undefined);
}

/** Returns the inputs of the decision on a new segment. The history records all of them. */
export function segmentFacts(): SegmentFacts {
  const info = workflowInfo();
  return {
    historyBytes: info.historySize,
    historyEvents: info.historyLength,
    suggested: info.continueAsNewSuggested || info.targetWorkerDeploymentVersionChanged,
    moved: info.targetWorkerDeploymentVersionChanged,
  };
}

/**
 * Returns the run's current next action. It is computed once per state, because many conditions
 * need it while calls run and a large batch takes time.
 */
export function actionNow(run: RunContext): Action {
  const { state } = run;
  const { historyEvents } = segmentFacts();
  const now = Date.now();
  const { last } = run;
  if (last?.state === state && last.now === now && last.historyEvents === historyEvents) {
    return last.action;
  }
  const action = nextAction(state, segmentFacts(), now);
  run.last = { state, now, historyEvents, action };
  return action;
}

/**
 * Whether this worker can execute local activities. The SDK fails one at once on a worker without
 * activities, without a trace in the history, so the run notes that by a marker: from then on, it
 * uses none until the end of the segment.
 */
export function runsLocally(run: RunContext, activity: 'loadAgent' | 'runReads'): boolean {
  if (run.hasNoActivities) return false;
  const isMissing = workflowInfo().unsafe.isReplaying
    ? patched(NO_ACTIVITIES_PATCH)
    : !hasActivity(activity) && patched(NO_ACTIVITIES_PATCH);
  run.hasNoActivities = isMissing;
  return !isMissing;
}

/** Whether the segment is full, and the next one can continue all work that is under way. */
export function mustLeave(run: RunContext): boolean {
  // Each call of a large batch asks, and the next action takes longer to find than the size.
  if (!segmentFull(run.state, segmentFacts(), Date.now())) return false;
  return actionNow(run).type === 'continue-as-new';
}
