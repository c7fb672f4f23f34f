import { listRuns } from '../../client/list.js';
import { assertListFilter, type ListFilter } from '../../client/list-filter.js';
import type { RunRow } from '../../client/run-row.js';
import { InputError } from '../../core/errors.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { formatDateTime } from '../format/format-time.js';
import { columns } from '../format/table.js';
import { noteServer } from '../hosting/note-server.js';
import { needsWorker, noteMissingWorker, readWorkerPresence } from '../hosting/note-worker.js';
import { nextCommandFor, nextCommandOf } from '../reports/next-command.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly tag?: readonly string[];
  readonly idPrefix?: string;
  /** An ISO 8601 time, or how long ago, such as `2h`. */
  readonly since?: string;
  readonly before?: string;
  readonly max?: number;
  /** The cursor that the previous page ended with. */
  readonly cursor?: string;
}

const PAGE_ROWS = 50;

/** `list`: lists the runs of the namespace, newest first. Needs no worker. */
export const list: Command<ListOptions> = {
  declare: (entry) =>
    withOptions(entry, 'agent', 'status', 'tag', 'idPrefix', 'since', 'before', 'max', 'cursor'),
  async run(context, { max = PAGE_ROWS, ...options }) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `listRuns` checks the status
    const filter = { ...options, limit: max } as ListFilter;
    check(filter);
    noteServer(context, await context.server());
    const client = await context.client();
    const { rows, cursor } = await listRuns(client, filter).catch(rethrowInFlags);
    for (const taskQueue of new Set(rows.filter(needsWorker).map((row) => row.taskQueue))) {
      const presence = await readWorkerPresence(client, taskQueue);
      noteMissingWorker(context, presence, await nextCommandFor(context, presence, ['worker']));
    }
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
    if (value === undefined) return [];
    return [value].flat().flatMap((one) => [flagOf(name), String(one)]);
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
  const words: Readonly<Record<string, string>> = { idPrefix: 'id-prefix', limit: 'max' };
  return `--${words[name] ?? name}`;
}

/** The columns are fields of a `RunRow`, which `--json` and `client.list` return. */
const FIELDS = [
  'id',
  'agent',
  'status',
  'reason',
  'startedAt',
  'closedAt',
] as const satisfies readonly Exclude<keyof RunRow, 'tags' | 'taskQueue' | 'unreadable'>[];
const HEADERS = FIELDS.map((field) => field.replace(/[A-Z]/g, ' $&').toUpperCase());

function cells(row: RunRow): readonly string[] {
  return FIELDS.map((field) => {
    const value = row[field];
    if (value === null) return '-';
    return field.endsWith('At') ? formatDateTime(Date.parse(value)) : visible(value);
  });
}
