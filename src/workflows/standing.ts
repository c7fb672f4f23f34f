import { condition } from '@temporalio/workflow';
import { nextAction } from '../core/next-action.js';
import type { Standing } from '../core/standing.js';
import { segmentFacts } from './segment-facts.js';
import type { Session } from './run-context.js';

/** The work was left as it stands: a new segment goes on with it. */
export const LEFT = Symbol('left');
export type Left = typeof LEFT;

/**
 * Whether blocked work has to be left because its segment is full: everything that is under way
 * stands still, and a new segment can take all of it over. `self`: the work that asks stands still.
 */
export function mustLeave(session: Session, self?: string): boolean {
  const { still, doing, state } = session;
  if (session.interruption !== null || (still.size === 0 && self === undefined)) return false;
  if ([...doing.keys()].some((name) => name !== self && !still.has(name))) return false;
  const facts = { ...segmentFacts(session), standing: true as const };
  return nextAction(state, facts).type === 'continue-as-new';
}

/** Runs a wait of blocked work, during which the work may be left. */
export async function standStill<T>(
  session: Session,
  name: string,
  wait: () => Promise<T>,
): Promise<T> {
  session.still.add(name);
  try {
    return await wait();
  } finally {
    session.still.delete(name);
  }
}

/** Waits for `over`, or until the work has to be left. */
export async function untilLeft(
  session: Session,
  over: () => boolean,
  waitMs?: number,
): Promise<void> {
  const done = (): boolean => over() || mustLeave(session);
  if (waitMs === undefined) await condition(done);
  else await condition(done, waitMs);
}

/** Keeps what blocked work needs to be taken up again; its block stays visible meanwhile. */
export function leave(
  session: Session,
  work: { name: string; probeMs: number; resumes: number; blob?: string },
): Left {
  const blocked = session.blocked.get(work.name);
  if (blocked !== undefined) session.left.set(work.name, { ...blocked, ...work });
  return LEFT;
}

/** Takes up work that was left, in this segment or in the one before. */
export function takeUp(session: Session, name: string): LeftWork | undefined {
  const left = session.left.get(name);
  session.left.delete(name);
  return left;
}

export interface LeftWork extends Standing {
  /** The count of `resume` when it was left. */
  readonly resumes: number;
}

/** Work that was left, in the form that the next segment takes over. */
export function standingOf({ left, pending, resolutions, resumes }: Session): readonly Standing[] {
  return [...left.values()].map(({ resumes: before, ...work }): Standing => {
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

/** Shows what the segment before has left blocked, before anything else happens in this one. */
export function standOn(session: Session, standing: readonly Standing[]): void {
  for (const { pending, resolution, ...work } of standing) {
    const { name, reason, message, reports, definition, asked } = work;
    session.left.set(name, { ...work, resumes: asked ? -1 : 0 });
    session.blocked.set(name, {
      reason,
      message,
      ...(reports && { reports }),
      ...(definition !== undefined && { definition }),
    });
    if (pending !== undefined) session.pending.set(name, pending);
    if (resolution !== undefined) session.resolutions.set(name, resolution);
  }
}

/** A turn is over: whatever of it stood still is of no interest any more. */
export function forgetStanding(session: Session): void {
  session.left.clear();
  session.blocked.clear();
  session.pending.clear();
  session.resolutions.clear();
}
