import type { Projection } from './projection.js';

/**
 * Returns when the server accepted a run, which may be long before a worker began it: Unix time in ms;
 * null before the first event. The first event of a later segment is not the start of the run.
 */
export function startOfRun({
  state,
  startedAt,
}: Pick<Projection, 'state' | 'startedAt'>): number | null {
  return state !== null && state.segments > 1 ? state.startedAt : startedAt;
}

/**
 * Returns how long a run that has ended took: from its acceptance to its end, so all its waits count, also
 * that for the first worker. Null while it is open.
 */
export function runMs(view: Pick<Projection, 'state' | 'startedAt' | 'ended'>): number | null {
  const startedAt = startOfRun(view);
  if (view.ended === null || startedAt === null) return null;
  return Math.max(0, view.ended.at - startedAt);
}
