import type { FollowedRun } from '../../history/follow-run.js';
import { followSegments } from '../../history/follow-run.js';
import { reached, type Reached, type FollowTarget } from '../../history/follow-target.js';
import type { OpenedRun } from '../open-run.js';

/** A run that has reached its target. */
export interface Arrival {
  readonly last: FollowedRun;
  readonly reached: Reached;
}

/**
 * Follows a run silently for a limited time. Returns null if it does not reach the target in time.
 */
export async function followWithin(
  { client, run }: OpenedRun,
  until: FollowTarget,
  { ms }: { readonly ms: number },
): Promise<Arrival | null> {
  const signal = AbortSignal.timeout(ms);
  for await (const last of followSegments(client, { id: run.id, runId: run.runId, signal })) {
    const end = reached(last.view, until);
    if (end !== null) return { last, reached: end };
  }
  return null;
}
