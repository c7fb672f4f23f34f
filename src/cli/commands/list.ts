import { ENDS, listRuns, LIVING, type ListFilter } from '../../client/list.js';
import { outcomeStatus, type RunRow } from '../../client/run-row.js';
import { visible } from '../../core/text/summaries.js';
import { nextCommand } from '../reports/next-command.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { noteServer } from '../hosting/note-server.js';
import { readWorkerPresence, noteMissingWorker } from '../hosting/note-worker.js';
import { columns } from '../format/table.js';
import { formatAgo } from '../format/format-time.js';
import { formatDuration } from '../format/format.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly limit: number;
}

const STATUSES = [...LIVING, 'done', ...ENDS] as const;

/** `list`: the runs of the namespace, newest first; needs no worker. */
export const list: Command<ListOptions> = async (context, options) => {
  const wish = queryOf(options);
  noteServer(context, await context.server());
  const client = await context.client();
  const { rows, more } = await listRuns(client, wish);
  const living = rows.some(({ status }) => status !== 'done');
  noteMissingWorker(
    context,
    await readWorkerPresence(client, await context.taskQueue()),
    living ? [nextCommand(context, 'worker')] : [],
  );
  if (more) context.note(`There are more; see more of them with --limit ${2 * wish.limit}`);
  if (context.options.json) context.out(JSON.stringify(rows));
  else if (rows.length === 0) context.note('There are no runs like that.');
  else for (const line of lines(rows, Date.now())) context.out(line);
  return EXIT.completed;
};

function queryOf({ agent, status, limit }: ListOptions): ListFilter {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new UsageError(`--limit ${limit}: give a whole number from 1`);
  }
  const known = STATUSES.find((name) => name === status);
  if (status !== undefined && known === undefined) {
    throw new UsageError(`--status ${visible(status)}: give one of ${STATUSES.join(', ')}`);
  }
  return { agent, status: known, limit };
}

function lines(rows: readonly RunRow[], now: number): readonly string[] {
  return columns([
    ['RUN', 'AGENT', 'STATUS', 'REASON', 'STARTED', 'TOOK'],
    ...rows.map(({ id, agent, status, reason, startedAt, closedAt }) => {
      const started = Date.parse(startedAt);
      return [
        visible(id),
        visible(agent ?? '-'),
        status === 'done' ? outcomeStatus(reason) : status,
        visible(reason ?? '-'),
        formatAgo(started, now),
        closedAt === null ? '-' : formatDuration(Date.parse(closedAt) - started),
      ];
    }),
  ]);
}
