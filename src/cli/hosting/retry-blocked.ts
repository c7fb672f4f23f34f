import { resumeRun } from '../../updates/resolve.js';
import { osUser } from '../claim.js';
import { needsPerson } from '../../core/blocked.js';
import { statusQuery } from '../../workflows/messages.js';
import type { OpenedRun } from '../open-run.js';

/** A worker is there, but may have to replay a long history. */
const HEARD_WITHIN_MS = 10_000;

/**
 * A blocked run probes in its own time. Whoever comes with a worker of theirs may have brought the
 * mend along, a key for instance: the run shall see at once. One that somebody has paused stays as
 * it is. Gives whether it was told so.
 */
export async function tryAgain({ client, run }: OpenedRun): Promise<boolean> {
  const { blocked, state } = run.view;
  if (state?.paused) return false;
  const isMendable = [...blocked.values()].some(({ reason }) => !needsPerson(reason));
  if (!isMendable) return false;
  try {
    // The worker before this one may have died before the run itself knew that it is blocked; what
    // is said to it then is lost. A query is answered when it has heard everything.
    await client.withDeadline(Date.now() + HEARD_WITHIN_MS, () =>
      client.workflow.getHandle(run.id).query(statusQuery),
    );
    await resumeRun(client, run.id, { by: osUser() });
    return true;
  } catch {
    // It probes by itself; until then the run stands as it was read.
    return false;
  }
}
