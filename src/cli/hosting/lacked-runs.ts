import { listRuns } from '../../client/list.js';
import { visible } from '../../core/state/summaries.js';
import type { CliContext } from '../context.js';
import { agentLack } from '../open-run.js';

/** The most runs that are checked, and the most that the note names. */
const [CHECKED, NAMED] = [200, 3];

/** How long a server may take to list the runs: the worker starts after that. */
const LIST_MS = 20_000;

/**
 * Notes which open runs of a task queue a worker of this configuration blocks, because it does not have their
 * agents. The worker may still be meant to run, for example after an agent was removed. Never throws.
 */
export async function noteLackedRuns(context: CliContext, taskQueue: string): Promise<void> {
  const lacked = await lackedRuns(context, taskQueue).catch(() => null);
  if (lacked !== null) context.note(lacked);
}

/** Returns which open runs of a task queue a worker of this configuration blocks; null if it blocks none. */
export async function lackedRuns(context: CliContext, taskQueue: string): Promise<string | null> {
  const client = await context.client();
  // The worker serves all other runs also if the server cannot list them.
  const signal = AbortSignal.timeout(LIST_MS);
  const { rows } = await listRuns(client, { all: true, limit: CHECKED }, { signal });
  const open = rows.filter((row) => row.closedAt === null && row.taskQueue === taskQueue);
  const names = [...new Set(open.map(({ agent }) => agent ?? ''))];
  const lacks = await Promise.all(names.map((agent) => agentLack(context, { agent })));
  const lacking = names.filter((_, at) => lacks[at] !== null);
  if (lacking.length === 0) return null;
  const ids = open.flatMap(({ agent, id }) => (lacking.includes(agent ?? '') ? [visible(id)] : []));
  const more = ids.length > NAMED ? `, and ${ids.length - NAMED} more` : '';
  return (
    `Task queue "${visible(taskQueue)}" has open runs of ${lacking.map(visible).join(', ')}, which this configuration does not have ` +
    `(${ids.slice(0, NAMED).join(', ')}${more}). A worker of this configuration blocks them: ` +
    'start the program that has the agent, and give this project a `taskQueue` of its own.'
  );
}
