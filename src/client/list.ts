import { ServiceError, type Client } from '@temporalio/client';
import { grpcCode, isUnanswered, serverAddress, unreachable } from '../temporal/grpc.js';
import { readInfo, type ListedWorkflow } from '../temporal/server-answers.js';
import { idHashingOf } from '../temporal/stored-ids.js';
import {
  readCursor,
  writeCursor,
  assertListFilter,
  listQuery,
  matchesFilter,
  startRange,
  type ListFilter,
  type StartRange,
} from './list-filter.js';
import { createCallerLookup } from './callers.js';
import { storedId } from './run-ids.js';
import { isInvalidQuery, readRunRow, type RunRow } from './run-row.js';

/** One page of a list of runs. */
export interface RunList {
  /**
   * The runs of the page, newest first. With a rare tag or an early `before`, there may be fewer
   * than the limit, or none.
   */
  readonly rows: readonly RunRow[];
  /** The `cursor` of the next page, for the same filter; null after the last page. */
  readonly cursor: string | null;
}

/** The maximum number of rows in a page if the filter has no limit. */
const ROWS = 50;
/** The maximum number of runs checked for one page of rows. */
const MAX_CHECKED = 1_000;
/** The same for a reader who may not see all of them. */
const MAX_HIDDEN = 50_000;
/**
 * The fewest and the most runs that the server is asked for at once. Each request for the same page of rows
 * asks for more, because the ones before have found too few that match.
 */
const [MIN_PAGE, MAX_PAGE] = [32, 1_000];
/** The maximum number of histories read at the same time, for runs without search attributes. */
const AT_ONCE = 8;

/** Whether the reader of a list may see a run: its row, and what the server has listed. */
export type SeesRow = (row: RunRow, listed: ListedWorkflow) => Promise<boolean>;

/**
 * Returns a page of the runs that match. The server lists open runs first, then those that ended
 * last. Rejects with an `InputError` for an invalid filter, and with a `NoServerError` if the
 * server does not answer.
 *
 * `sees`: the list is as if no other run existed, also its pages and cursors. It ends at the
 * 50,000th run checked, because a page that stopped there would betray the runs it has passed over.
 * `signal`: ends the reading, with its reason.
 */
export async function listRuns(
  client: Client,
  filter: ListFilter,
  { sees, signal }: { readonly sees?: SeesRow | undefined; readonly signal?: AbortSignal } = {},
): Promise<RunList> {
  assertListFilter(filter);
  const { limit = ROWS } = filter;
  const scope = { filter, namespace: client.options.namespace };
  const { now, token } = readCursor(scope);
  const range = startRange(filter, now);
  const read = { filter, limit, range, token, sees, signal };
  const { rows, next } = await collect(client, { ...read, byAttributes: true }).catch(
    async (error: unknown) => {
      if (!isInvalidQuery(error)) throw error;
      return await collect(client, { ...read, byAttributes: false });
    },
  );
  return {
    rows: rows.toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)),
    cursor: next === null ? null : writeCursor({ now, token: next }, scope),
  };
}

const NONE: ReadonlySet<ListedWorkflow> = new Set();

/** Rows that match, and the server's token for what follows them; null at the end of the list. */
interface Found {
  readonly rows: readonly RunRow[];
  readonly next: Uint8Array | null;
}

async function collect(
  client: Client,
  given: {
    readonly filter: ListFilter;
    readonly limit: number;
    readonly range: StartRange;
    readonly token: Uint8Array;
    readonly sees: SeesRow | undefined;
    readonly signal: AbortSignal | undefined;
    readonly byAttributes: boolean;
  },
): Promise<Found> {
  const { filter, limit, range, byAttributes, sees, signal } = given;
  const { root, idPrefix, ...others } = filter;
  const asked = {
    ...others,
    ...(root !== undefined && { root: await storedId(client, root) }),
    // The server has hashes, so what is read of each run decides.
    ...(idPrefix !== undefined && idHashingOf(client) === null && { idPrefix }),
  };
  const query = listQuery(asked, { ...range, byAttributes });
  const most = sees === undefined ? MAX_CHECKED : MAX_HIDDEN;
  const isWhole = filter.all === true || filter.root !== undefined;
  const calledIn = isWhole ? async () => NONE : createCallerLookup(client);
  let checked = 0;
  let size = Math.max(Math.min(limit, MAX_PAGE - 1) + 1, MIN_PAGE);
  const readUpTo = async (from: Uint8Array, wanted: number): Promise<Found> => {
    const rows: RunRow[] = [];
    let next: Uint8Array | null = from;
    while (next !== null && rows.length < wanted && checked < most) {
      const page: Found & { readonly checked: number } = await readPage(client, {
        query,
        token: next,
        size: Math.min(size, most - checked),
        wanted: wanted - rows.length,
        signal,
        calledIn,
        matches: async (row, listed) =>
          matchesFilter(row, filter, range) && (sees === undefined || (await sees(row, listed))),
      });
      rows.push(...page.rows);
      checked += page.checked;
      size = Math.min(2 * size, MAX_PAGE);
      next = page.next;
    }
    return { rows, next };
  };
  const found = await readUpTo(given.token, limit);
  if (sees === undefined || found.next === null) return found;
  // A cursor promises more, so there must be a run that the reader may see.
  const more = found.rows.length < limit ? null : await readUpTo(found.next, 1);
  return more === null || more.rows.length === 0 ? { ...found, next: null } : found;
}

/**
 * Reads a page from the server, up to the run with the last row wanted. Only the server makes
 * tokens, at the ends of its pages, so the page is read again with that end if more runs follow.
 */
async function readPage(
  client: Client,
  {
    query,
    token,
    size: first,
    wanted,
    signal,
    calledIn,
    matches,
  }: {
    readonly query: string;
    readonly token: Uint8Array;
    /** The number of runs that the server is asked for. */
    readonly size: number;
    readonly wanted: number;
    readonly signal: AbortSignal | undefined;
    /** Returns those of a page that are left out because other runs have called them. */
    readonly calledIn: ReturnType<typeof createCallerLookup>;
    readonly matches: (row: RunRow, listed: ListedWorkflow) => Promise<boolean>;
  },
): Promise<Found & { readonly checked: number }> {
  for (let size = first; ;) {
    signal?.throwIfAborted();
    const { infos, next } = await fetchPage(client, { query, token, size });
    const called = await calledIn(infos);
    const rows: RunRow[] = [];
    let checked = 0;
    while (checked < infos.length && rows.length < wanted) {
      signal?.throwIfAborted();
      const slice = infos.slice(checked, checked + AT_ONCE);
      const read = await Promise.all(
        slice.map(async (listed) => {
          if (called.has(listed)) return null;
          const row = await readRunRow(client, listed);
          return (await matches(row, listed)) ? row : null;
        }),
      );
      for (const row of read) {
        if (rows.length === wanted) break;
        checked += 1;
        if (row !== null) rows.push(row);
      }
    }
    if (checked === infos.length) return { rows, checked, next };
    size = checked;
  }
}

async function fetchPage(
  client: Client,
  {
    query,
    token,
    size,
  }: { readonly query: string; readonly token: Uint8Array; readonly size: number },
): Promise<{ readonly infos: readonly ListedWorkflow[]; readonly next: Uint8Array | null }> {
  const { namespace } = client.options;
  const request = { namespace, query, nextPageToken: token, pageSize: size };
  const { executions, nextPageToken: next } = await client.workflowService
    .listWorkflowExecutions(request)
    .catch((error: unknown) => {
      throw listError(error, serverAddress(client));
    });
  const infos = await Promise.all(executions.map((raw) => readInfo(client, raw)));
  return { infos, next: next.length === 0 ? null : next };
}

/**
 * Returns the error of a list that failed: a `NoServerError` only if the server did not answer. Keeps
 * the cause, which identifies a refused query.
 */
export function listError(error: unknown, address: string): Error {
  const cause = error instanceof Error ? error : new Error(String(error));
  if (grpcCode(cause) === null) {
    // For example, the client is disconnected.
    return new ServiceError(`the runs cannot be listed: ${cause.message}`, { cause });
  }
  if (!isUnanswered(cause)) return new ServiceError('the server does not list the runs', { cause });
  return unreachable(address, cause);
}
