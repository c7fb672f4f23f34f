import { createHash } from 'node:crypto';
import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { RUN_STATUSES, type RunStatusName, isOpenStatus } from '../core/state/status.js';
import { parseDuration, show } from '../core/text/text.js';
import { type OptionSchemas, checkOptions, expected } from '../validation/check-options.js';
import { type RunRow, queryTerm } from './run-row.js';

/** The statuses that a list can be filtered by; `ended` is any status of a run that has ended. */
const LIST_STATUSES = [...Object.keys(RUN_STATUSES), 'ended'];

/** Selects the runs of a list. A run is listed if it matches every given filter. */
export interface ListFilter {
  /** Only runs of this agent. Default: any. */
  readonly agent?: string | undefined;
  /** The status of the run; `ended`: any status of a run that has ended. Default: any. */
  readonly status?: RunStatusName | 'ended' | undefined;
  /**
   * Only runs that were started with this tag, or with all of these. The server does not index
   * tags. Default: any.
   */
  readonly tag?: string | readonly string[] | undefined;
  /**
   * Only runs whose id begins with this text, or whose `givenId` does, if ids are hashed. Default:
   * any.
   */
  readonly idPrefix?: string | undefined;
  /**
   * Only runs that started at this time or later: a Date, ISO 8601, or how long ago, such as `2h`
   * or `3d`. Default: any time.
   */
  readonly since?: Date | string | undefined;
  /**
   * Only runs that started before this time: a Date, ISO 8601, or how long ago, such as `2h` or
   * `3d`. Default: any time.
   */
  readonly before?: Date | string | undefined;
  /**
   * Also the runs that other runs have called; default: only runs that no run has called. Runs that a
   * workflow of your own has started are listed either way.
   */
  readonly all?: boolean | undefined;
  /**
   * Only the runs below this run: those that it has called, and those that they have called.
   * Default: all runs.
   */
  readonly root?: string | undefined;
  /** The maximum number of rows in a page, from 1; default 50. */
  readonly limit?: number | undefined;
  /**
   * The `cursor` of the page before this one, for the same filter. Default: none, for the first
   * page.
   */
  readonly cursor?: string | undefined;
}

/** When the runs of a filter started, in Unix milliseconds. `before` itself is excluded. */
export interface StartRange {
  readonly since: number | null;
  readonly before: number | null;
}

const MAX_CHARACTERS = 1_000;
const isoTime = z.union([z.iso.datetime({ local: true, offset: true }), z.iso.date()]);

const textOption = expected<string>(
  'a text; give one, or omit it',
  (value) => typeof value === 'string' && value !== '',
).optional();
const plainOption = expected<string>(
  `a text of 1 to ${MAX_CHARACTERS} characters without quotes and backslashes; omit those`,
  (value) =>
    typeof value === 'string' &&
    value !== '' &&
    value.length <= MAX_CHARACTERS &&
    !/['"`\\]/.test(value),
).optional();
const tagOption = expected<string | readonly string[]>(
  `a text of 1 to ${MAX_CHARACTERS} characters without quotes and backslashes, or several; omit those`,
  (value) =>
    [value].flat().every((one) => typeof one === 'string' && plainOption.safeParse(one).success),
).optional();
const timeOption = expected<Date | string>(
  'a time; give ISO 8601 such as "2026-01-31T09:00:00Z", or how long ago, such as "2h" or "3d"',
  (value) => readTime(value, 0) !== null,
).optional();

const filterOptions = z.strictObject({
  agent: textOption,
  status: expected(`one of ${LIST_STATUSES.join(', ')}`, (value) =>
    LIST_STATUSES.some((name) => name === value),
  ).optional(),
  tag: tagOption,
  idPrefix: plainOption,
  since: timeOption,
  before: timeOption,
  all: z.boolean().optional(),
  root: plainOption,
  limit: expected(
    'a whole number from 1',
    (value) => Number.isSafeInteger(value) && Number(value) >= 1,
  ).optional(),
  cursor: textOption,
} satisfies OptionSchemas<ListFilter>);

/** Throws an `InputError` with a line for each fault of a filter. */
export function assertListFilter(filter: ListFilter): void {
  checkOptions(
    'list',
    { schema: filterOptions, options: filter },
    (text) => new InputError(text.replace(/^list: /, '')),
  );
}

/**
 * Returns the start times of a checked filter. Throws an `InputError` if no time is in the range.
 */
export function startRange({ since, before }: ListFilter, now: number): StartRange {
  const range = { since: readTime(since, now), before: readTime(before, now) };
  if (range.since === null || range.before === null || range.since < range.before) return range;
  throw new InputError(
    `before: expected a time after since, which is ${show(since)}, got ${show(before)}; swap them`,
  );
}

/**
 * Returns a time of a filter in Unix milliseconds; durations count back from `now`. Null for anything
 * else.
 */
export function readTime(value: unknown, now: number): number | null {
  if (value instanceof Date) return finite(value.getTime());
  if (typeof value !== 'string') return null;
  const ago = parseDuration(value);
  if (ago !== null) return now - ago;
  return isoTime.safeParse(value).success ? finite(Date.parse(value)) : null;
}

function finite(time: number): number | null {
  return Number.isFinite(time) ? time : null;
}

/**
 * Returns a query that also matches runs without search attributes; `matchesFilter` checks those. It
 * matches runs that others have called, which have a parent as those of a workflow of your own have.
 */
export function listQuery(
  { agent, status, idPrefix, root }: ListFilter,
  { since, byAttributes }: Pick<StartRange, 'since'> & { readonly byAttributes: boolean },
): string {
  const isOpen = status !== undefined && isOpenStatus(status);
  const conditions = [`WorkflowType = 'agent'`, `ExecutionStatus != 'ContinuedAsNew'`];
  if (root !== undefined) {
    conditions.push(queryTerm('RootWorkflowId', root), queryTerm('WorkflowId', root, '!='));
  }
  if (status !== undefined) conditions.push(`CloseTime IS ${isOpen ? '' : 'NOT '}NULL`);
  if (idPrefix !== undefined) conditions.push(queryTerm('WorkflowId', idPrefix, 'STARTS_WITH'));
  // The newest segment starts later than its run, so it does not prove that the run started too
  // late.
  if (since !== null) conditions.push(queryTerm('StartTime', new Date(since).toISOString(), '>='));
  if (byAttributes && status !== undefined && isOpen) {
    conditions.push(`(${queryTerm('AgentStatus', status)} OR AgentStatus IS NULL)`);
  }
  if (byAttributes && agent !== undefined) {
    conditions.push(`(${queryTerm('AgentName', agent)} OR AgentName IS NULL)`);
  }
  return conditions.join(' AND ');
}

/**
 * Returns whether a row that the query has found matches the filter. A row that could not be read
 * matches unless the part that was read shows otherwise, since a list that omits it would be wrong.
 */
export function matchesFilter(
  row: RunRow,
  { agent, status, tag, idPrefix = '' }: ListFilter,
  { since, before }: StartRange,
): boolean {
  const isWhole = row.unreadable === undefined;
  const isUnknown = row.agent === null && !isWhole;
  if (agent !== undefined && row.agent !== agent && !isUnknown) return false;
  if (tag !== undefined && isWhole && ![tag].flat().every((one) => row.tags.includes(one)))
    return false;
  if (![row.id, row.givenId].some((id) => id?.startsWith(idPrefix))) return false;
  const startedAt = Date.parse(row.startedAt);
  if (since !== null && startedAt < since) return false;
  if (before !== null && startedAt >= before) return false;
  if (status === undefined || row.status === status) return true;
  if (isUnknown) return true;
  return status === 'ended' && !isOpenStatus(row.status);
}

/** Where a page of a list begins. */
interface ListPlace {
  /** The time from which durations such as `2h` count back: that of the first page. */
  readonly now: number;
  /** The server's token of the page. */
  readonly token: Uint8Array;
}

/** What a cursor is for: the namespace and the filter of its list. */
interface CursorScope {
  readonly namespace: string;
  readonly filter: ListFilter;
}

const cursorContent = z.strictObject({
  now: z.int(),
  token: z.base64(),
  /** The digest of the scope. */
  scope: z.string(),
  /** The digest of the other fields. */
  sum: z.string(),
});
type CursorContent = z.infer<typeof cursorContent>;

/** Returns the text that a caller passes to get the page at `place`. */
export function writeCursor({ now, token }: ListPlace, scope: CursorScope): string {
  const fields = {
    now,
    token: Buffer.from(token).toString('base64'),
    scope: scopeDigest(scope),
  };
  return Buffer.from(JSON.stringify({ ...fields, sum: sumOf(fields) })).toString('base64url');
}

/**
 * Returns the place of a cursor; without one, the beginning of the list. Throws an `InputError` for
 * a damaged cursor, and for a cursor of another list.
 */
export function readCursor(scope: CursorScope): ListPlace {
  const { cursor } = scope.filter;
  if (cursor === undefined) return { now: Date.now(), token: new Uint8Array() };
  const content = decode(cursor);
  if (content === null || content.sum !== sumOf(content)) {
    throw new InputError(
      `cursor: expected the cursor of a list, got ${show(cursor)}; copy it completely, or omit it for the first page`,
    );
  }
  if (content.scope === scopeDigest(scope)) {
    return { now: content.now, token: Buffer.from(content.token, 'base64') };
  }
  throw new InputError(
    `cursor: expected the cursor of a list with the same filter and namespace, got ${show(cursor)}; ` +
      'repeat the options of the previous page, or omit it for the first page',
  );
}

function decode(cursor: string): CursorContent | null {
  try {
    const json: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return cursorContent.safeParse(json).data ?? null;
  } catch {
    return null;
  }
}

function sumOf({ now, token, scope }: Omit<CursorContent, 'sum'>): string {
  return digest([now, token, scope]);
}

/** The limit may differ from page to page. */
function scopeDigest({ namespace, filter }: CursorScope): string {
  const { agent, status, tag, idPrefix, since, before, all, root } = filter;
  return digest([namespace, agent, status, tag, idPrefix, since, before, all, root]);
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 16);
}
