import { listRuns } from '../../client/list.js';
import { assertListFilter, LIST_STATUSES, type ListFilter } from '../../client/list-filter.js';
import type { RunRow } from '../../client/run-row.js';
import { InputError } from '../../core/errors.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { formatDateTime } from '../format/format-time.js';
import { columns } from '../format/table.js';
import { noteServer } from '../hosting/note-server.js';
import { noteMissingWorker, readWorkerPresence } from '../hosting/note-worker.js';
import { parseNumber } from '../input/option-parsers.js';
import { nextCommand, nextCommandOf } from '../reports/next-command.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly tag?: string;
  readonly idPrefix?: string;
  /** An ISO 8601 time, or how long ago, such as `2h`. */
  readonly since?: string;
  readonly before?: string;
  readonly limit: number;
  /** The cursor that the previous page ended with. */
  readonly cursor?: string;
}

/** `list`: lists the runs of the namespace, newest first. Needs no worker. */
export const list: Command<ListOptions> = {
  declare: (entry) =>
    entry
      .option('--agent <name>', 'list only runs of this agent')
      .option('--status <status>', `list only runs with this status: ${LIST_STATUSES.join(', ')}`)
      .option('--tag <tag>', 'list only runs that were started with this tag')
      .option('--id-prefix <text>', 'list only runs whose id begins with this text')
      .option('--since <time>', 'list only runs started since: ISO 8601, or how long ago (2h, 3d)')
      .option('--before <time>', 'list only runs started before: ISO 8601, or how long ago')
      .option('--limit <n>', 'list at most n runs', parseNumber, 50)
      .option('--cursor <cursor>', 'list the next page; the previous page shows its cursor'),
  async run(context, options) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `listRuns` checks the status
    const filter = options as ListFilter;
    check(filter);
    noteServer(context, await context.server());
    const client = await context.client();
    const { rows, cursor } = await listRuns(client, filter).catch(rethrowInFlags);
    const isAnyOpen = rows.some(({ status }) => status !== 'done');
    const presence = await readWorkerPresence(client, await context.taskQueue());
    noteMissingWorker(context, presence, isAnyOpen ? [nextCommand(context, 'worker')] : []);
    if (cursor !== null) noteNextPage(context, filter, cursor);
    if (context.options.json) context.out(JSON.stringify({ rows, cursor }));
    else if (rows.length > 0)
      for (const line of columns([HEADERS, ...rows.map(cells)])) context.out(line);
    else if (cursor === null) context.note('No runs match.');
    for (const { id, unreadable } of rows)
      if (unreadable !== undefined) context.note(`Run ${visible(id)}: ${unreadable}`);
    return EXIT.completed;
  },
};

/** The options that make up a filter, except the cursor. */
const FILTERS = ['agent', 'status', 'tag', 'idPrefix', 'since', 'before', 'limit'] as const;

function noteNextPage(context: CliContext, filter: ListFilter, cursor: string): void {
  const words = FILTERS.flatMap((name) => {
    const value = filter[name];
    return value === undefined ? [] : [flagOf(name), String(value)];
  });
  const next = nextCommandOf(context, ['list', ...words, '--cursor', cursor]);
  context.note(`There may be more runs. List the next page with: ${next}`);
}

/** Throws a `UsageError` for an invalid filter before anything is opened. */
function check(filter: ListFilter): void {
  try {
    assertListFilter(filter);
  } catch (error) {
    rethrowInFlags(error);
  }
}

/**
 * Throws a `UsageError` that names flags instead of fields for an invalid filter. Rethrows any
 * other error.
 */
function rethrowInFlags(error: unknown): never {
  if (!InputError.isInstance(error)) throw error;
  const text = error.message
    .replaceAll(/^(- )?([a-zA-Z]+)(?=: )/gm, (_, dash = '', name: string) => dash + flagOf(name))
    .replace('a time after since', 'a time after --since');
  throw new UsageError(text, { cause: error });
}

function flagOf(name: string): string {
  return `--${name.replace('idPrefix', 'id-prefix')}`;
}

/** The columns are fields of a `RunRow`, which `--json` and `client.list` return. */
const FIELDS = [
  'id',
  'agent',
  'status',
  'reason',
  'startedAt',
  'closedAt',
] as const satisfies readonly Exclude<keyof RunRow, 'tags' | 'unreadable'>[];
const HEADERS = FIELDS.map((field) => field.replace(/[A-Z]/g, ' $&').toUpperCase());

function cells(row: RunRow): readonly string[] {
  return FIELDS.map((field) => {
    const value = row[field];
    if (value === null) return '-';
    return field.endsWith('At') ? formatDateTime(Date.parse(value)) : visible(value);
  });
}
