import { runStatus } from '../../core/run-status.js';
import type { Request } from '../../core/requests/request.js';
import type { RunState } from '../../core/state.js';
import type { RunStatus } from '../../core/status.js';
import type { Projection } from '../../history/projection.js';

type Requested = Pick<RunStatus, 'status' | 'reason' | 'pending'>;

/** A cache: watching a run reads its requests several times a second, and each costs a hash. */
const known = new WeakMap<RunState, { readonly run: string; readonly status: Requested }>();

type Viewed = Pick<Projection, 'state' | 'ended'>;

/** Returns the open requests of a run, oldest first. `run` is the id of the run. */
export function viewedRequests(view: Viewed, run: string): readonly Request[] {
  return viewedStatus(view, run)?.pending ?? [];
}

/**
 * Returns the status of a run that has started and not ended, as `client.status` does; else null.
 */
export function viewedStatus({ state, ended }: Viewed, run: string): Requested | null {
  if (state === null || ended !== null) return null;
  const found = known.get(state);
  if (found?.run === run) return found.status;
  const status = runStatus(state, { ended: null, run });
  known.set(state, { run, status });
  return status;
}
