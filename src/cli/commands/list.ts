import type { Client } from '@temporalio/client';
import { withCalled } from '../../agents/agent-definition.js';
import { type ListFilter, assertListFilter } from '../../client/list-filter.js';
import { listWithBelow, withNewest } from '../../client/below.js';
import { listRuns } from '../../client/list.js';
import { type OpenRequest, beingChecked, listRequests } from '../../client/requests.js';
import type { RunRow } from '../../client/run-row.js';
import { shownReason } from '../../core/state/status-text.js';
import { toRunStatus } from '../../client/status.js';
import { InputError } from '../../core/errors.js';
import { visible } from '../../core/state/summaries.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { columns, formatDateTime } from '../format/format.js';
import {
  needsWorker,
  noteMissingWorker,
  noteServer,
  readWorkerPresence,
} from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { agentLack, requireOpenRun, workerHint } from '../open-run.js';
import {
  nextCommandAbout,
  nextCommandFor,
  nextCommandOf,
  runnableFixes,
} from '../reports/next-command.js';
import { namesHint, nearHint } from '../../validation/near-names.js';
import { checkingHint } from '../requests/checked-decision.js';
import { openRequest } from '../requests/decide.js';
import { heldRuns } from '../requests/held-runs.js';
import {
  columnsOf,
  inboxLines,
  ownFixes,
  ownListed,
  readable,
  shownRequest,
} from '../requests/show-request.js';

export interface ListOptions {
  readonly agent?: string;
  readonly status?: string;
  readonly tag?: readonly string[];
  readonly idPrefix?: string;
  /** An ISO 8601 time, or how long ago, such as `2h`. */
  readonly since?: string;
  readonly before?: string;
  readonly all?: boolean;
  readonly root?: string;
  readonly max?: number;
  /** The cursor that the previous page ended with. */
  readonly cursor?: string;
}

const PAGE_ROWS = 50;

const NO_RUNS = 'The server has no runs in this namespace.';
const NO_MATCH =
  'No runs match. A run that the server has deleted is in no list; status and transcript read it from the archive.';

/** `list`: lists the runs of the namespace, newest first. Needs no worker. */
export const list: Command<ListOptions> = {
  declare: (entry) =>
    withOptions(
      entry,
      'agent',
      'status',
      'tag',
      'idPrefix',
      'since',
      'before',
      'all',
      'root',
      'max',
      'cursor',
    ),
  async run(context, { max = PAGE_ROWS, ...options }) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `listRuns` checks the status
    const filter = { ...options, limit: max } as ListFilter;
    checkFilter(filter);
    noteServer(context, await context.server());
    const client = await context.client();
    const { rows: listed, cursor } = await listWithBelow(client, filter).catch(rethrowInFlags);
    const rows = await withNewest(client, listed);
    const needy = rows.filter(needsWorker);
    for (const taskQueue of new Set(needy.map((row) => row.taskQueue))) {
      const presence = await readWorkerPresence(client, taskQueue);
      const agents = needy.flatMap((row) => (row.taskQueue === taskQueue ? (row.agent ?? '') : []));
      // A configuration that cannot be loaded does not prevent a list.
      const lacks = await Promise.all(agents.map((agent) => agentLack(context, { agent }))).catch(
        () => [null],
      );
      const [lack = null] = lacks.includes(null) ? [] : lacks;
      const start = `Start one with: ${await nextCommandFor(context, presence, ['worker'])}`;
      noteMissingWorker(context, presence, lack ?? start);
    }
    if (context.options.json) context.out(JSON.stringify({ rows, cursor }));
    else if (rows.length > 0) for (const line of table(rows)) context.out(line);
    else if (cursor === null) {
      const isFiltered = Object.keys(options).some((name) => name !== 'cursor');
      context.note(isFiltered ? NO_MATCH : NO_RUNS);
      const { agent } = filter;
      const unknown = agent === undefined ? null : await unknownAgentText(context, client, agent);
      if (unknown !== null) context.note(`${unknown}.`);
      await noteUnknownValues(context, client, filter);
    }
    for (const { id, unreadable } of rows)
      if (unreadable !== undefined) context.note(`Run ${visible(id)}: ${unreadable}`);
    if (cursor !== null) noteNextPage(context, filter, cursor);
    return EXIT.completed;
  },
};

/**
 * Returns that neither the configuration nor a run has an agent of this name, which may be misspelled; null
 * if one has it, and if the configuration is unknown.
 */
export async function unknownAgentText(
  context: CliContext,
  client: Client,
  agent: string,
): Promise<string | null> {
  // A configuration that cannot be loaded does not prevent the command.
  const config = await context.config().catch(() => null);
  const names = withCalled(config?.agents ?? []).map(({ name }) => name);
  if (names.length === 0 || names.includes(agent)) return null;
  const { rows } = await listRuns(client, { agent, all: true, limit: 1 });
  if (rows.length > 0) return null;
  const hint = namesHint(agent, names.map(visible), 'the configuration has');
  return `--agent: neither the configuration nor a run has agent "${visible(agent)}" (${hint})`;
}

/** The most runs of which a note compares the ids or the tags. */
const COMPARED = 200;

/** Notes the root and the tags of a filter that no run has, which may be misspelled. */
async function noteUnknownValues(
  context: CliContext,
  client: Client,
  { root, tag }: ListFilter,
): Promise<void> {
  const asked = [
    ...(root === undefined ? [] : [{ option: '--root', value: root, filter: { root } }]),
    ...[tag ?? []].flat().map((value) => ({ option: '--tag', value, filter: { tag: value } })),
  ];
  for (const { option, value, filter } of asked) {
    const having = await listRuns(client, { ...filter, all: true, limit: COMPARED });
    // A run that cannot be read may have any tag, so it is listed.
    if (having.rows.some(({ unreadable }) => unreadable === undefined)) continue;
    const { rows } = await listRuns(client, { all: true, limit: COMPARED });
    const known = rows.flatMap((row) => (option === '--root' ? [row.id] : row.tags));
    const hint = nearHint(value, [...new Set(known.map(visible))]);
    const what = option === '--root' ? 'there is no run' : 'no run has the tag';
    context.note(`${option}: ${what} "${visible(value)}"${hint}.`);
  }
}

/** The options that make up a filter, except the cursor. */
const FILTERS = ['agent', 'status', 'tag', 'idPrefix', 'since', 'before', 'root', 'limit'] as const;

function noteNextPage(context: CliContext, filter: ListFilter, cursor: string): void {
  const words = FILTERS.flatMap((name) => {
    const value = filter[name];
    if (value === undefined) return [];
    return [value].flat().flatMap((one) => [flagOf(name), String(one)]);
  });
  const all = filter.all === true ? ['--all'] : [];
  const next = nextCommandOf(context, ['list', ...words, ...all, '--cursor', cursor]);
  context.note(`There may be more runs. List the next page with: ${next}`);
}

/** Throws a `UsageError` for an invalid filter before anything is opened. */
export function checkFilter(filter: ListFilter): void {
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
] as const satisfies readonly Exclude<
  keyof RunRow,
  'tags' | 'taskQueue' | 'blockedBelow' | 'checking' | 'unreadable' | 'givenId' | 'givenTenant'
>[];

/**
 * Formats rows as a table, which has the tenants only if a run has one, and the ids that callers chose only if
 * ids are hashed.
 */
function table(given: readonly RunRow[]): readonly string[] {
  const rows = given.map((row) => ({
    ...row,
    reason: shownReason(row),
    ...(row.givenTenant !== undefined && { tenant: row.givenTenant }),
  }));
  const hasTenants = rows.some(({ tenant }) => tenant !== undefined);
  const hasGivenIds = rows.some(({ givenId }) => givenId !== undefined);
  const fields = [
    ...FIELDS,
    ...(hasTenants ? (['tenant'] as const) : []),
    ...(hasGivenIds ? (['givenId'] as const) : []),
  ];
  const headers = fields.map((field) => field.replace(/[A-Z]/g, ' $&').toUpperCase());
  const cells = (row: RunRow): readonly string[] =>
    fields.map((field) => {
      const value = row[field] ?? null;
      if (value === null) return '-';
      return field.endsWith('At') ? formatDateTime(Date.parse(value)) : visible(value);
    });
  return columns([headers, ...rows.map(cells)]);
}

interface InboxOptions {
  /** Show only this run's requests, each in full. */
  readonly id?: string;
  readonly request?: string;
  readonly agent?: string;
  /** Do not truncate arguments. */
  readonly full?: boolean;
}

/** `inbox [ID [REQUEST]]`: lists the requests that runs wait for, oldest first. Needs no worker. */
export const inbox: Command<InboxOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('[id]', 'show the requests of this run in full; default: list those of all runs')
        .argument('[request]', 'show only this request'),
      'agent',
      'full',
    ),
  async run(context, { id, request, agent, full = false }) {
    if (id === undefined && full) {
      throw new UsageError('--full: expected a run, got none; give its id, or omit --full');
    }
    if (id !== undefined && agent !== undefined) {
      throw new UsageError('--agent: expected no ID, got both; omit one of them');
    }
    return id === undefined
      ? await listAll(context, agent)
      : await showRun(context, { id, request, full });
  },
};

async function listAll(context: CliContext, agent: string | undefined): Promise<ExitCode> {
  noteServer(context, await context.server());
  const client = await context.client();
  const { requests: listed, more, unreadable } = await listRequests(client, { agent });
  const { canceled, checking, decided } = await heldRuns(client, listed);
  const requests = listed
    .filter(({ run, id }) => !canceled.has(run) && !decided.get(run)?.ids.has(id))
    .map((one) => (checking.get(one.run)?.checked.has(one.id) ? beingChecked(one) : one));
  if (context.options.json) {
    const fixed = await ownListed(client, requests);
    context.out(JSON.stringify(runnableFixes(context, fixed)));
  } else if (requests.length === 0) {
    if (unreadable.length === 0) {
      context.note(
        `No ${canceled.size + decided.size > 0 ? 'other ' : ''}run is waiting for a decision.`,
      );
    }
    const unknown = agent === undefined ? null : await unknownAgentText(context, client, agent);
    if (unknown !== null) context.note(`${unknown}.`);
  } else {
    const show = (one: OpenRequest) => nextCommandAbout(context, ['inbox', one.run, one.id]);
    const checked = ({ run, id }: OpenRequest) => checking.get(run)?.checked.get(id);
    const options = { width: columnsOf('stdout'), now: Date.now(), show, checked };
    for (const line of inboxLines(requests, options)) context.out(line);
  }
  for (const [run, { place }] of checking) {
    const hint = await checkingHint(context, place);
    if (hint !== null)
      context.note(`A decision of run ${visible(run)} waits for a worker to check it. ${hint}`);
  }
  for (const [run, { place }] of decided) {
    const hint = await checkingHint(context, place);
    if (hint !== null)
      context.note(
        `A decision of run ${visible(run)} takes effect when a worker runs; it is left out. ${hint}`,
      );
  }
  for (const [run, place] of canceled) {
    context.note(
      `Requests of run ${visible(run)} are left out: a cancel is requested, which takes effect when a worker runs. ${await workerHint(context, place)}`,
    );
  }
  for (const { run, why } of unreadable)
    context.note(`Run ${visible(run)} may wait for a decision: ${why}`);
  if (more) context.note('There are more requests; decide some, or filter by --agent.');
  return EXIT.completed;
}

async function showRun(
  context: CliContext,
  { id, request, full }: { id: string; request: string | undefined; full: boolean },
): Promise<ExitCode> {
  const { opened, requests } =
    request === undefined
      ? await allOf(context, id)
      : await openRequest(context, id, request).then((found) => ({
          opened: found.opened,
          requests: [found.request],
        }));
  const { run } = opened;
  if (context.options.json) {
    const whole = requests.map(async (each) =>
      full ? (await readable(context, each)).request : each,
    );
    const fixed = runnableFixes(context, ownFixes(run, await Promise.all(whole)));
    const rows = fixed.map((each) => ({ run: run.id, agent: run.agent, ...each }));
    context.out(JSON.stringify(rows));
    return EXIT.completed;
  }
  if (requests.length === 0) context.note('The run is not waiting for a decision.');
  for (const [at, one] of requests.entries()) {
    if (at > 0) context.out('');
    const { lines } = await shownRequest(context, { run, request: one }, { to: 'stdout', full });
    for (const line of lines) context.out(line);
  }
  return EXIT.completed;
}

async function allOf(context: CliContext, id: string) {
  const opened = await requireOpenRun(context, id);
  return { opened, requests: toRunStatus(opened.run, Date.now()).pending };
}
