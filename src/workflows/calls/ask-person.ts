import type { Resolution } from '../../core/calls/call-results.js';
import type { Blocked, Pending } from '../../core/status.js';
import { inFlight, type Session } from '../run-context.js';
import { leave, standStill, untilLeft, type Left } from '../standing.js';

/**
 * Blocks the run, visibly, until a person decides about a call. Returns `LEFT` where the segment is
 * full: the next one goes on asking. Rejects when the work is broken off.
 */
export async function askPerson(
  session: Session,
  { pending, blocked }: { readonly pending: Pending; readonly blocked: Blocked },
): Promise<Resolution | Left> {
  const { call } = pending;
  session.pending.set(call, pending);
  session.blocked.set(call, blocked);
  session.changed();
  const decided = (): boolean => session.resolutions.has(call);
  let left = false;
  try {
    await standStill(session, call, () => inFlight(session, () => untilLeft(session, decided)));
    left = !decided();
  } finally {
    if (!left) {
      session.pending.delete(call);
      session.blocked.delete(call);
      session.changed();
    }
  }
  const resolution = session.resolutions.get(call);
  session.resolutions.delete(call);
  if (resolution !== undefined) return resolution;
  return leave(session, { name: call, probeMs: 0, resumes: session.resumes });
}
