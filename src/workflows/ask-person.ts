import { condition } from '@temporalio/workflow';
import type { Resolution } from '../core/call-results.js';
import type { Blocked, Pending } from '../core/status.js';
import { inFlight, type Session } from './session.js';

/** Blocks the run, visibly, until a person decides about a call. Rejects when the work is broken off. */
export async function askPerson(
  session: Session,
  { pending, blocked }: { readonly pending: Pending; readonly blocked: Blocked },
): Promise<Resolution> {
  const { call } = pending;
  session.pending.set(call, pending);
  session.blocked.set(call, blocked);
  session.changed();
  try {
    await inFlight(session, () => condition(() => session.resolutions.has(call)));
  } finally {
    session.pending.delete(call);
    session.blocked.delete(call);
    session.changed();
  }
  const resolution = session.resolutions.get(call);
  session.resolutions.delete(call);
  if (resolution === undefined) throw new Error(`${call}: nobody has decided`);
  return resolution;
}
