import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  TimeoutFailure,
  condition,
  isCancellation,
  patched,
} from '@temporalio/workflow';
import { misfitMessage } from '../core/guards/recorded.js';
import { type ActivityProblem, parseProblem } from '../core/interpret/block.js';
import type { FactOf, Task } from '../core/run/events.js';
import { type WorkStep, isCancelable, nextWorkStep } from '../core/run/next-action.js';
import { DECIDED_PROBE_PATCH } from '../core/state/state.js';
import { type Work, findWork } from '../core/state/work.js';
import type { BlockedReason } from '../core/transcript/outcome.js';
import { checkBlob } from './activities.js';
import {
  type RunContext,
  inFlight,
  mustLeave,
  recordNow,
  unlessInterrupted,
} from './run-context.js';

// The end of an activity: its checked result, or the data of its failure.

/**
 * Returns the recorded result of an activity if it has the right form. Otherwise, throws the
 * failure of an activity that cannot do its work, because an operator may complete an activity with
 * any value.
 */
export function checkedResult<T>(
  activity: string,
  fits: (value: unknown) => value is T,
  value: unknown,
): T {
  if (fits(value)) return value;
  const message = misfitMessage(activity, value);
  const problem: ActivityProblem = { type: 'failed', reason: 'error', message };
  throw ApplicationFailure.create({
    type: 'Failed',
    nonRetryable: true,
    message,
    details: [problem],
  });
}

/** Returns the problem that perdure's own activities store in a failure; null if there is none. */
export function activityProblem(error: unknown): ActivityProblem | null {
  const cause = failureCause(error);
  return cause instanceof ApplicationFailure ? parseProblem(cause.details) : null;
}

/** Returns what the history records about an activity that did not complete. */
export function failureFact(
  task: Task,
  error: unknown,
): Omit<FactOf<'failed'>, 'at'> | Omit<FactOf<'cancelled'>, 'at'> {
  const cause = failureCause(error);
  if (isCancellation(error)) {
    const details = cause instanceof CancelledFailure ? cause.details : undefined;
    return { type: 'cancelled', task, ...(details && { details }) };
  }
  const isOurs = cause instanceof ApplicationFailure;
  const failure = {
    message: failureMessage(error),
    type: isOurs ? (cause.type ?? '') : '',
    timedOut: cause instanceof TimeoutFailure,
    details: isOurs ? (cause.details ?? []) : [],
  };
  return { type: 'failed', task, failure };
}

/** Returns the innermost message, for people. */
export function failureMessage(error: unknown): string {
  const cause = failureCause(error);
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns the failure inside an `ActivityFailure`. */
function failureCause(error: unknown): unknown {
  return error instanceof ActivityFailure ? error.cause : error;
}

/** The next activity to start for a piece of work. */
export type StartStep = Extract<WorkStep, { type: 'start' }>;

/** An activity to start, and how the history records it. */
export interface ActivityStart {
  readonly task: Task;
  readonly start: () => Promise<unknown>;
}

/** Returns an activity to start with this input. */
export function activityStart<I>(
  activity: string,
  input: I,
  start: (input: I) => Promise<unknown>,
): ActivityStart {
  return { task: { activity, input }, start: () => start(input) };
}

/** Returns the activity that waits until the missing blob of blocked work can be read. */
export function blobCheck(name: string, { block }: StartStep): ActivityStart {
  return activityStart('checkBlob', { sha256: block?.blob ?? '', work: name }, checkBlob);
}

/** Returns the reason of a probe if it is one of these, as a field of the activity's input. */
export function blockedField<B extends BlockedReason>(
  { as, block }: StartStep,
  reasons: readonly B[],
): { readonly blocked?: B } {
  const reason = as === 'probe' && reasons.find((known) => known === block?.reason);
  return reason ? { blocked: reason } : {};
}

/** A piece of work done by activities. */
interface WorkSpec {
  /** A call's id, or the name of other work. */
  readonly name: string;
  /** One line for people; absent for work that the status does not show. */
  readonly doing?: string;
  /** `work` is undefined for the first attempt. */
  readonly activity: (step: StartStep, work: Work | undefined) => ActivityStart;
  /** Whether something else continues the work; default: never. */
  readonly isReady?: (work: Work) => boolean;
}

const FIRST: StartStep = { type: 'start', as: 'attempt' };

/**
 * Does a piece of work until it is over: starts its activities, waits while it is blocked, and
 * records the results. The state determines the next step. Returns early if the run is interrupted,
 * or if the segment is full and the next one can continue the work. Returns the last failure, or
 * null. Never rejects because of an activity.
 */
export async function doWork(run: RunContext, spec: WorkSpec): Promise<unknown> {
  const { name, doing, activity, isReady } = spec;
  let failure: unknown = null;
  if (doing !== undefined) {
    run.doing.set(name, doing);
    run.publishStatus();
  }
  try {
    for (let isFirst = true; ; isFirst = false) {
      const work = findWork(run.state, name);
      if (work === undefined && !isFirst) return failure;
      if (work !== undefined && (mustLeave(run) || isReady?.(work))) return failure;
      // A person's decision must be checked first.
      if (work?.proposal !== undefined) return failure;
      const step = work === undefined ? FIRST : nextWorkStep(run.state, work, Date.now());
      if (step.type === 'stop') return failure;
      // A decision may take months; the run resumes the work when it is made.
      if (step.type === 'wait' && work?.phase === 'asking') return failure;
      if (step.type === 'wait') {
        await untilNextStep(run, name, step.until);
        continue;
      }
      const { task, start } = activity(step, work);
      recordNow(run, { type: 'scheduled', task });
      try {
        // This is awaited here and not in a separate function, because each promise of a step makes
        // replay slower.
        const result = await (isProbe(run, name)
          ? inFlight(run, () => cancelableProbe(run, name, start), name)
          : inFlight(run, start, name));
        recordNow(run, { type: 'completed', task, result });
        failure = null;
      } catch (error) {
        recordNow(run, failureFact(task, error));
        failure = error;
      }
    }
  } finally {
    run.doing.delete(name);
  }
}

function isProbe(run: RunContext, name: string): boolean {
  const work = findWork(run.state, name);
  return work !== undefined && isCancelable(run.state, work);
}

/** Runs a probe that `resume`, a decision to check, and the end of the segment cancel. */
async function cancelableProbe(
  run: RunContext,
  name: string,
  start: () => Promise<unknown>,
): Promise<unknown> {
  const probe = new CancellationScope();
  const watch = new CancellationScope();
  /** `mayCancel`: asked once the condition holds. */
  const cancelOnce = (isUnwanted: () => boolean, mayCancel = (): boolean => true): void => {
    watch
      .run(() => condition(isUnwanted))
      .then(
        () => mayCancel() && probe.cancel(),
        () => undefined,
      );
  };
  cancelOnce(() => findWork(run.state, name)?.resumed === true || mustLeave(run));
  const isDecided = (): boolean => findWork(run.state, name)?.proposal !== undefined;
  cancelOnce(isDecided, () => patched(DECIDED_PROBE_PATCH));
  try {
    return await probe.run(start);
  } finally {
    watch.cancel();
  }
}

/** Waits until the work can proceed, or until this Unix time in ms. */
async function untilNextStep(run: RunContext, name: string, until: number | null): Promise<void> {
  const isOver = (): boolean => {
    const work = findWork(run.state, name);
    if (work === undefined || work.proposal !== undefined || mustLeave(run)) return true;
    return nextWorkStep(run.state, work, Date.now()).type !== 'wait';
  };
  await unlessInterrupted(run, async () => {
    if (until === null) await condition(isOver);
    else await condition(isOver, Math.max(1, until - Date.now()));
  });
}
