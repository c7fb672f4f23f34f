import { CancellationScope, condition, isCancellation } from '@temporalio/workflow';
import type { CheckBlobInput } from '../core/contract.js';
import { checkBlob } from './activities.js';
import { untilDeferral, whileDeferrable } from './blocked-work.js';
import { inFlight, type RunContext } from './run-context.js';

// The waits of blocked work. `deferrable` is the name of work that may be deferred to the next
// segment meanwhile, and null for work that may not.

/** The result of a probe that was canceled before it began to act. */
export const CANCELED = Symbol('canceled');

/**
 * Waits until a blob can be read, `resume` is called, or the work has to be deferred. The result of
 * the activity is ignored, because the next attempt reads the blob itself.
 */
export async function untilReadable(
  run: RunContext,
  deferrable: string | null,
  input: CheckBlobInput,
): Promise<void> {
  try {
    await runProbe(run, deferrable, () => checkBlob(input));
  } catch (error) {
    if (run.interruption !== null) throw error;
  }
}

/**
 * Runs a probe that `resume` may cancel, and that the end of the segment may cancel where the work
 * can be deferred. Returns `CANCELED` in both cases.
 */
export async function runProbe<R>(
  run: RunContext,
  deferrable: string | null,
  start: () => Promise<R>,
): Promise<R | typeof CANCELED> {
  const watch = new CancellationScope();
  const work = async (): Promise<R> => {
    const scope = new CancellationScope();
    run.probes.add(scope);
    if (deferrable !== null) {
      watch
        .run(() => untilDeferral(run, () => false))
        .then(
          () => scope.cancel(),
          () => undefined,
        );
    }
    try {
      return await scope.run(start);
    } finally {
      run.probes.delete(scope);
      watch.cancel();
    }
  };
  try {
    return await blockedWait(run, deferrable, work);
  } catch (error) {
    if (run.interruption === null && isCancellation(error)) return CANCELED;
    throw error;
  }
}

/**
 * Waits until `resume` is called, at most `waitMs`, or until the work has to be deferred. Returns
 * whether `resume` was called since the count `resumes`.
 */
export async function resumedSince(
  run: RunContext,
  { deferrable, resumes, waitMs }: { deferrable: string | null; resumes: number; waitMs: number },
): Promise<boolean> {
  const resumed = (): boolean => run.resumes > resumes;
  await blockedWait(run, deferrable, async () => {
    if (deferrable === null) await condition(resumed, waitMs);
    else await untilDeferral(run, resumed, waitMs);
  });
  return resumed();
}

/** Waits until the run is not paused. Returns false if the work has to be deferred before that. */
export async function untilUnpaused(run: RunContext, deferrable: string | null): Promise<boolean> {
  const isUnpaused = (): boolean => !run.state.paused;
  await blockedWait(run, deferrable, () =>
    deferrable === null ? condition(isUnpaused) : untilDeferral(run, isUnpaused),
  );
  return isUnpaused();
}

async function blockedWait<R>(
  run: RunContext,
  deferrable: string | null,
  wait: () => Promise<R>,
): Promise<R> {
  const waiting = (): Promise<R> => inFlight(run, wait);
  return await (deferrable === null ? waiting() : whileDeferrable(run, deferrable, waiting));
}
