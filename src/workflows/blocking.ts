import { CancellationScope, isCancellation } from '@temporalio/workflow';
import type { BlockedReason } from '../core/blocked.js';
import type { ActivityProblem } from '../core/failure.js';
import { problemOf } from './problem.js';
import { inFlight, resumedWithin, type Session } from './session.js';

/** The first probe of a blocked run; the activity's own retries pace the later ones. */
const FIRST_PROBE_MS = 30_000;

type Block<B extends BlockedReason> = Extract<ActivityProblem, { type: 'blocked' }> & {
  readonly reason: B;
};

/** A kind of work with the reasons that can block it. */
export interface Blockable<B extends BlockedReason, T> {
  /** Call id, or `model`. */
  readonly name: string;
  readonly reasons: readonly B[];
  /** `blocked` marks a probe: the activity waits the same trouble out. */
  readonly attempt: (blocked: B | undefined) => Promise<T>;
}

/**
 * Makes an attempt until it gets through. What can be mended from outside blocks the run, visibly:
 * after a while one probe is scheduled, which Temporal retries without a further event of history,
 * and `resume` makes the next attempt at once.
 *
 * Rejects with what is no block, and with the cancellation when the work is interrupted.
 */
export async function untilMended<B extends BlockedReason, T>(
  session: Session,
  work: Blockable<B, T>,
): Promise<T> {
  const { name, attempt } = work;
  let block: Block<B> | null = null;
  for (;;) {
    try {
      const result = await (block === null
        ? inFlight(session, () => attempt(undefined))
        : probe(session, () => attempt(block?.reason)));
      unblock(session, name);
      return result;
    } catch (error) {
      if (session.interruption !== null) {
        unblock(session, name);
        throw error;
      }
      if (isCancellation(error)) {
        // Only `resume` cancels without an interruption: ask again at once, as if nothing had been.
        block = null;
        continue;
      }
      block = blockOf(error, work.reasons);
      if (block === null) {
        unblock(session, name);
        throw error;
      }
    }
    const { reason, message, reports } = block;
    session.blocked.set(name, { reason, message, ...(reports && { reports }) });
    session.changed();
    const wait = Math.max(FIRST_PROBE_MS, block.waitMs ?? 0);
    if (await resumedWithin(session, wait)) block = null;
  }
}

async function probe<T>(session: Session, work: () => Promise<T>): Promise<T> {
  return await inFlight(session, async () => {
    const scope = new CancellationScope();
    session.probes.add(scope);
    try {
      return await scope.run(work);
    } finally {
      session.probes.delete(scope);
    }
  });
}

function blockOf<B extends BlockedReason>(error: unknown, reasons: readonly B[]): Block<B> | null {
  const problem = problemOf(error);
  if (problem?.type !== 'blocked') return null;
  const reason = reasons.find((known) => known === problem.reason);
  return reason === undefined ? null : { ...problem, reason };
}

function unblock(session: Session, name: string): void {
  if (session.blocked.delete(name)) session.changed();
}
