import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { readFact } from '../../client/history-facts.js';
import { project, type Projection } from '../../client/projection.js';
import { visible } from '../../core/summaries.js';
import { advice } from '../advice.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { createHosting } from '../hosting.js';
import { catchInterrupt } from '../interrupt.js';
import { noteServer } from '../note-server.js';
import { reportEnd } from '../report-end.js';
import { seeThrough, type SeeOptions } from '../see-through.js';

export interface AttachOptions extends SeeOptions {
  readonly id: string;
}

export const attach: Command<AttachOptions> = async (context, options) => {
  const { id } = options;
  noteServer(context, await context.server());
  const client = await context.client();
  const { runId, view: joined } = await findRun(context, client, id);
  if (joined.ended !== null) return await reportEnd(context, { id, runId, view: joined });
  const interrupt = catchInterrupt();
  const hosting = createHosting(context);
  try {
    const ready = hosting.ensure();
    await ready;
    const retries = hosting.isHosting && (await tryAgain(client, id, joined));
    const retriedUpTo = retries ? joined.lastEvent : 0;
    return await seeThrough(
      context,
      { id, runId, joined, retriedUpTo, hosting, ready, interrupt },
      options,
    );
  } finally {
    await hosting.stop();
  }
};

async function findRun(
  context: CliContext,
  client: Client,
  id: string,
): Promise<{ runId: string; view: Projection }> {
  try {
    const { runId, type } = await client.workflow.getHandle(id).describe();
    if (type !== 'agent') {
      throw new Error(`${visible(id)} is a workflow of type ${visible(type)}, no run of an agent`);
    }
    const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
    return { runId, view: project((events ?? []).map(readFact)) };
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new Error(`there is no run "${visible(id)}"; see: ${advice(context, 'list')}`, {
      cause: error,
    });
  }
}

/**
 * A blocked run probes in its own time. Whoever attaches with a worker of theirs may have brought
 * the mend along, a key for instance: the run shall see at once.
 */
async function tryAgain(client: Client, id: string, { blocked }: Projection): Promise<boolean> {
  const mendable = [...blocked.values()].some(({ reason }) => reason !== 'outcome_unknown');
  if (!mendable) return false;
  return await client.workflow
    .getHandle(id)
    .executeUpdate('resume')
    .then(
      () => true,
      () => false,
    );
}
