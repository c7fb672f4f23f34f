import { CancellationScope, condition, isCancellation } from '@temporalio/workflow';
import type { BlockedReason } from '../core/blocked.js';
import type { ActivityProblem } from '../core/failure.js';
import { problemOf } from './problem.js';
import { inFlight, resumedSince, type Session } from './session.js';

/** The first probe of a blocked run; then twice as long each time. */
const FIRST_PROBE_MS = 30_000;
const LONGEST_PROBE_MS = 60 * 60_000;

type Block<B extends BlockedReason> = Extract<ActivityProblem, { type: 'blocked' }> & {
  readonly reason: B;
};

/** A kind of work with the reasons that can block it. */
export interface Blockable<B extends BlockedReason, T> {
  /** Call id, or `model`. */
  readonly name: string;
  readonly reasons: readonly B[];
  /** `resume` may break a probe off to ask at once; not where the probe may have begun to act. */
  readonly breakable: boolean;
  /** `blocked` marks a probe: the activity waits the same trouble out where it has retries. */
  readonly attempt: (blocked: B | undefined) => Promise<T>;
}

/**
 * Carries on with work whose first attempt failed, until it gets through. What can be mended from
 * outside blocks the run, visibly: after a while a probe is scheduled, which Temporal retries without
 * a further event of history (a `once` tool has no retries, so its probes come ever more rarely),
 * and `resume` makes the next attempt at once.
 *
 * Rejects with what is no block, and with the cancellation when the work is broken off.
 */
export async function mend<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
  failed: { error: unknown; resumes: number },
): Promise<T> {
  let { resumes } = failed;
  let block = judge(session, work, failed.error);
  let probeMs = FIRST_PROBE_MS;
  try {
    for (;;) {
      const waitMs = Math.max(probeMs, block?.waitMs ?? 0);
      if (block !== null && (await resumedSince(session, resumes, waitMs))) block = null;
      if (block === null) unblock(session, work.name);
      if (session.state.paused)
        await inFlight(session, () => condition(() => !session.state.paused));
      probeMs = Math.min(2 * probeMs, LONGEST_PROBE_MS);
      resumes = session.resumes;
      try {
        return await (block === null
          ? inFlight(session, () => work.attempt(undefined))
          : probe(session, work, block.reason));
      } catch (error) {
        block = judge(session, work, error);
      }
    }
  } finally {
    unblock(session, work.name);
  }
}

/** Shows a block. @returns null where `resume` broke a probe off, so that it is asked again at once */
function judge<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
  error: unknown,
): Block<B> | null {
  if (session.interruption !== null) throw error;
  if (isCancellation(error) && work.breakable) return null;
  const problem = problemOf(error);
  const reason = work.reasons.find((known) => known === problem?.reason);
  if (problem?.type !== 'blocked' || reason === undefined) throw error;
  const { message, reports, definition } = problem;
  session.blocked.set(work.name, {
    reason,
    message,
    ...(reports && { reports }),
    ...(definition !== undefined && { definition }),
  });
  session.changed();
  return { ...problem, reason };
}

function unblock(session: Session, name: string): void {
  if (session.blocked.delete(name)) session.changed();
}

async function probe<B extends BlockedReason, T>(
  session: Session,
  { attempt, breakable }: Blockable<B, T>,
  reason: B,
): Promise<T> {
  return await inFlight(session, async () => {
    const scope = new CancellationScope();
    if (breakable) session.probes.add(scope);
    try {
      return await scope.run(() => attempt(reason));
    } finally {
      session.probes.delete(scope);
    }
  });
}
