import { OUTCOME_STATUSES, listRuns, OPEN_STATUSES, type ListFilter } from '../../client/list.js';
import type { RunRow } from '../../client/run-row.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { formatDateTime } from '../format/format-time.js';
import { columns } from '../format/table.js';
import { noteServer } from '../hosting/note-server.js';
import { noteMissingWorker, readWorkerPresence } from '../hosting/note-worker.js';
import { parseNumber } from '../input/option-parsers.js';
import { nextCommand } from '../reports/next-command.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly limit: number;
}

const STATUSES = [...OPEN_STATUSES, 'done', ...OUTCOME_STATUSES] as const;

/** `list`: lists the runs of the namespace, newest first. Needs no worker. */
export const list: Command<ListOptions> = {
  declare: (entry) =>
    entry
      .option('--agent <name>', 'list only runs of this agent')
      .option('--status <status>', `list only runs with this status: ${STATUSES.join(', ')}`)
      .option('--limit <n>', 'list at most n runs', parseNumber, 50),
  async run(context, options) {
    const filter = filterOf(options);
    noteServer(context, await context.server());
    const client = await context.client();
    const { rows, more } = await listRuns(client, filter);
    const isAnyLiving = rows.some(({ status }) => status !== 'done');
    const presence = await readWorkerPresence(client, await context.taskQueue());
    noteMissingWorker(context, presence, isAnyLiving ? [nextCommand(context, 'worker')] : []);
    if (more) context.note(`There are more runs; list more with --limit ${2 * filter.limit}`);
    if (context.options.json) context.out(JSON.stringify(rows));
    else if (rows.length === 0) context.note('No runs match.');
    else for (const line of columns([HEADERS, ...rows.map(cells)])) context.out(line);
    return EXIT.completed;
  },
};

function filterOf({ agent, status, limit }: ListOptions): ListFilter {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new UsageError(`--limit: expected a whole number from 1, got ${limit}`);
  }
  const known = STATUSES.find((name) => name === status);
  if (status !== undefined && known === undefined) {
    throw new UsageError(
      `--status: expected one of ${STATUSES.join(', ')}; got ${visible(status)}`,
    );
  }
  return { agent, status: known, limit };
}

/** The columns are the fields of a `RunRow`, which `--json` and `client.list` return. */
const FIELDS = [
  'id',
  'agent',
  'status',
  'reason',
  'startedAt',
  'closedAt',
] as const satisfies readonly (keyof RunRow)[];
const HEADERS = FIELDS.map((field) => field.replace(/[A-Z]/g, ' $&').toUpperCase());

function cells(row: RunRow): readonly string[] {
  return FIELDS.map((field) => {
    const value = row[field];
    if (value === null) return '-';
    return field.endsWith('At') ? formatDateTime(Date.parse(value)) : visible(value);
  });
}
