import { CancellationScope, condition } from '@temporalio/workflow';
import type { BlockedReason } from '../core/blocked.js';
import type { Task } from '../core/facts.js';
import { isCancelable, nextWorkStep, type WorkStep } from '../core/work/next-step.js';
import { findWork, type Work } from '../core/work/work.js';
import { checkBlob } from './activities.js';
import { failureFact } from './activity-result.js';
import { inFlight, recordNow, unlessInterrupted, type RunContext } from './run-context.js';
import { mustLeave } from './segment-facts.js';

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
export interface WorkSpec {
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
          ? inFlight(run, () => cancelableProbe(run, name, start))
          : inFlight(run, start));
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

/** Runs a probe that `resume` and the end of the segment may cancel. */
async function cancelableProbe(
  run: RunContext,
  name: string,
  start: () => Promise<unknown>,
): Promise<unknown> {
  const probe = new CancellationScope();
  const watch = new CancellationScope();
  const isUnwanted = (): boolean => findWork(run.state, name)?.resumed === true || mustLeave(run);
  watch
    .run(() => condition(isUnwanted))
    .then(
      () => probe.cancel(),
      () => undefined,
    );
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
