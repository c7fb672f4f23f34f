import { ENDS, listRuns, LIVING, type ListWish } from '../../client/list.js';
import { endedAs, type RunRow } from '../../client/run-row.js';
import { visible } from '../../core/text/summaries.js';
import { advice } from '../reports/next-command.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { noteServer } from '../hosting/note-server.js';
import { lookForWorker, noteAbsence } from '../hosting/note-worker.js';
import { columns } from '../format/table.js';
import { ago } from '../format/format-time.js';
import { duration } from '../format/format.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly limit: number;
}

const STATUSES = [...LIVING, 'done', ...ENDS] as const;

/** `list`: the runs of the namespace, newest first; needs no worker. */
export const list: Command<ListOptions> = async (context, options) => {
  const wish = wishOf(options);
  noteServer(context, await context.server());
  const client = await context.client();
  const { rows, more } = await listRuns(client, wish);
  const living = rows.some(({ status }) => status !== 'done');
  noteAbsence(
    context,
    await lookForWorker(client, await context.taskQueue()),
    living ? [advice(context, 'worker')] : [],
  );
  if (more) context.say(`There are more; see more of them with --limit ${2 * wish.limit}`);
  if (context.options.json) context.out(JSON.stringify(rows));
  else if (rows.length === 0) context.say('There are no runs like that.');
  else for (const line of lines(rows, Date.now())) context.out(line);
  return EXIT.completed;
};

function wishOf({ agent, status, limit }: ListOptions): ListWish {
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
        status === 'done' ? endedAs(reason) : status,
        visible(reason ?? '-'),
        ago(started, now),
        closedAt === null ? '-' : duration(Date.parse(closedAt) - started),
      ];
    }),
  ]);
}
