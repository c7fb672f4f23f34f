import { CancellationScope, condition, isCancellation } from '@temporalio/workflow';
import type { CheckBlobInput } from '../core/contract.js';
import { checkBlob } from './activities.js';
import { inFlight, type Session } from './run-context.js';
import { standStill, untilLeft } from './standing.js';

// How blocked work waits. `still` is its name where it may be left meanwhile, null where it may not.

/** A probe was broken off before it had begun to act. */
export const BROKEN = Symbol('broken');

/**
 * Waits until a blob can be read, or somebody says `resume`, or the work has to be left. What the
 * activity brings, or why it failed, is not looked at: the attempt that follows shows how it is.
 */
export async function untilReadable(
  session: Session,
  still: string | null,
  input: CheckBlobInput,
): Promise<void> {
  try {
    await breakably(session, still, () => checkBlob(input));
  } catch (error) {
    if (session.interruption !== null) throw error;
  }
}

/** Runs what `resume`, and the end of the segment where the work may be left, may break off. */
export async function breakably<R>(
  session: Session,
  still: string | null,
  run: () => Promise<R>,
): Promise<R | typeof BROKEN> {
  const watch = new CancellationScope();
  const work = async (): Promise<R> => {
    const scope = new CancellationScope();
    session.probes.add(scope);
    if (still !== null) {
      watch
        .run(() => untilLeft(session, () => false))
        .then(
          () => scope.cancel(),
          () => undefined,
        );
    }
    try {
      return await scope.run(run);
    } finally {
      session.probes.delete(scope);
      watch.cancel();
    }
  };
  try {
    return await standing(session, still, work);
  } catch (error) {
    if (session.interruption === null && isCancellation(error)) return BROKEN;
    throw error;
  }
}

/** Waits until somebody says `resume`, at most `waitMs`, or until the work has to be left. */
export async function resumedSince(
  session: Session,
  { still, resumes, waitMs }: { still: string | null; resumes: number; waitMs: number },
): Promise<boolean> {
  const resumed = (): boolean => session.resumes > resumes;
  await standing(session, still, async () => {
    if (still === null) await condition(resumed, waitMs);
    else await untilLeft(session, resumed, waitMs);
  });
  return resumed();
}

/** @returns false where the work has to be left, paused as it is */
export async function unpaused(session: Session, still: string | null): Promise<boolean> {
  const free = (): boolean => !session.state.paused;
  await standing(session, still, () =>
    still === null ? condition(free) : untilLeft(session, free),
  );
  return free();
}

async function standing<R>(
  session: Session,
  still: string | null,
  wait: () => Promise<R>,
): Promise<R> {
  const waiting = (): Promise<R> => inFlight(session, wait);
  return await (still === null ? waiting() : standStill(session, still, waiting));
}
