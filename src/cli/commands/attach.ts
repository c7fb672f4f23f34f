import { resumeRun } from '../../client/decide.js';
import { endOfRun } from '../../client/end-of-run.js';
import { statusQuery } from '../../workflows/handles.js';
import type { Command } from '../command.js';
import { createHosting } from '../hosting.js';
import { catchInterrupt } from '../interrupt.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { reportEnd } from '../report-end.js';
import { seeThrough, type SeeOptions } from '../see-through.js';

/** A worker is there, but may have to replay a long history. */
const HEARD_WITHIN_MS = 10_000;

export interface AttachOptions extends SeeOptions {
  readonly id: string;
}

/** `attach ID`: follows a run from where it stands, and works on it when nobody else does. */
export const attach: Command<AttachOptions> = async (context, options) => {
  const { id } = options;
  const opened = await openRun(context, id);
  const { runId, taskQueue, view: joined } = opened.run;
  if (endOfRun(opened.run) !== null) return await reportEnd(context, opened.run);
  const interrupt = catchInterrupt();
  const hosting = createHosting(context, taskQueue);
  try {
    const ready = hosting.ensure();
    await ready;
    const isRetried = hosting.isHosting && (await tryAgain(opened));
    const retriedUpTo = isRetried ? joined.lastEvent : 0;
    const seen = { id, runId, taskQueue, joined, retriedUpTo, hosting, ready, interrupt };
    return await seeThrough(context, seen, options);
  } finally {
    await hosting.stop();
  }
};

/**
 * A blocked run probes in its own time. Whoever attaches with a worker of theirs may have brought
 * the mend along, a key for instance: the run shall see at once. Gives whether it was told so.
 */
async function tryAgain({ client, run }: OpenedRun): Promise<boolean> {
  const { blocked } = run.view;
  const isMendable = [...blocked.values()].some(({ reason }) => reason !== 'outcome_unknown');
  if (!isMendable) return false;
  try {
    // The worker before this one may have died before the run itself knew that it is blocked; what
    // is said to it then is lost. A query is answered when it has heard everything.
    await client.withDeadline(Date.now() + HEARD_WITHIN_MS, () =>
      client.workflow.getHandle(run.id).query(statusQuery),
    );
    await resumeRun(client, run.id);
    return true;
  } catch {
    // It probes by itself; until then the run stands as it was read.
    return false;
  }
}
