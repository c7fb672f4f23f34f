import { condition } from '@temporalio/workflow';
import type { BlockedWork } from '../core/blocked-work.js';
import { nextAction } from '../core/next-action.js';
import type { RunContext } from './run-context.js';
import { segmentFacts } from './segment-facts.js';

// A run may stay blocked for longer than one segment lasts. Its blocked work is then deferred: the
// segment ends, and the next one restores the blocks and takes the work up where it was.

/** The result of work that was deferred to the next segment. */
export const DEFERRED = Symbol('deferred');
export type Deferred = typeof DEFERRED;

/** Blocked work that was deferred. */
export interface DeferredWork extends BlockedWork {
  /** The count of `resume` at that time. */
  readonly resumes: number;
}

/**
 * Whether blocked work has to be deferred now: the segment is full, and all work in progress can be
 * deferred. `self` is the work that asks; it counts as deferrable.
 */
export function mustDefer(run: RunContext, self?: string): boolean {
  const { deferrable, doing, state } = run;
  if (run.interruption !== null || (deferrable.size === 0 && self === undefined)) return false;
  if ([...doing.keys()].some((name) => name !== self && !deferrable.has(name))) return false;
  const facts = { ...segmentFacts(run), allBlocked: true as const };
  return nextAction(state, facts).type === 'continue-as-new';
}

/** Runs a wait of blocked work, during which the work can be deferred. */
export async function whileDeferrable<T>(
  run: RunContext,
  name: string,
  wait: () => Promise<T>,
): Promise<T> {
  run.deferrable.add(name);
  try {
    return await wait();
  } finally {
    run.deferrable.delete(name);
  }
}

/** Waits until `isOver`, until the work has to be deferred, or for `waitMs`. */
export async function untilDeferral(
  run: RunContext,
  isOver: () => boolean,
  waitMs?: number,
): Promise<void> {
  const done = (): boolean => isOver() || mustDefer(run);
  if (waitMs === undefined) await condition(done);
  else await condition(done, waitMs);
}

/** Records what blocked work needs to be taken up again. Its block stays visible meanwhile. */
export function defer(
  run: RunContext,
  work: { name: string; probeMs: number; resumes: number; blob?: string },
): Deferred {
  const blocked = run.blocked.get(work.name);
  if (blocked !== undefined) run.deferred.set(work.name, { ...blocked, ...work });
  return DEFERRED;
}

/** Returns work that this segment or the one before deferred, and removes it from the list. */
export function takeDeferred(run: RunContext, name: string): DeferredWork | undefined {
  const work = run.deferred.get(name);
  run.deferred.delete(name);
  return work;
}

/** Returns all deferred work in the form that the next segment receives. */
export function deferredWork({
  deferred,
  pending,
  resolutions,
  resumes,
}: RunContext): readonly BlockedWork[] {
  return [...deferred.values()].map(({ resumes: before, ...work }): BlockedWork => {
    const asked = resumes > before || work.asked;
    const question = pending.get(work.name);
    const resolution = resolutions.get(work.name);
    return {
      ...work,
      ...(asked && { asked }),
      ...(question && { pending: question }),
      ...(resolution && { resolution }),
    };
  });
}

/** Restores the blocks of the segment before. Has to run before anything else in the segment. */
export function restoreBlockedWork(run: RunContext, blocked: readonly BlockedWork[]): void {
  for (const { pending, resolution, ...work } of blocked) {
    const { name, reason, message, reports, definition, asked } = work;
    run.deferred.set(name, { ...work, resumes: asked ? -1 : 0 });
    run.blocked.set(name, {
      reason,
      message,
      ...(reports && { reports }),
      ...(definition !== undefined && { definition }),
    });
    if (pending !== undefined) run.pending.set(name, pending);
    if (resolution !== undefined) run.resolutions.set(name, resolution);
  }
}

/** Removes the blocked work of a turn that has ended. */
export function forgetBlockedWork(run: RunContext): void {
  run.deferred.clear();
  run.blocked.clear();
  run.pending.clear();
  run.resolutions.clear();
}
