import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import type { Outcome } from '../core/outcome.js';
import type { RunStatusName } from '../core/status.js';
import { isInvalidQuery, queryTerm } from './queries.js';
import { outcomeStatus, readRunRow, type RunRow } from './run-row.js';

export const OPEN_STATUSES = [
  'working',
  'waiting_message',
  'waiting_decision',
  'waiting_time',
  'blocked',
  'paused',
] as const satisfies readonly RunStatusName[];
export const OUTCOME_STATUSES = [
  'completed',
  'stopped',
  'cancelled',
  'failed',
] as const satisfies readonly Outcome['status'][];

export interface ListFilter {
  readonly agent?: string | undefined;
  /** The status of the run, or the status of its outcome. */
  readonly status?:
    (typeof OPEN_STATUSES)[number] | (typeof OUTCOME_STATUSES)[number] | 'done' | undefined;
  /** The maximum number of rows. */
  readonly limit: number;
}

export interface RunList {
  /** Newest first. */
  readonly rows: readonly RunRow[];
  /** Whether there may be more runs that match. */
  readonly more: boolean;
}

/** How many runs are checked for a match. */
const MAX_CHECKED = 1_000;
/** How many histories are read at the same time, for runs without search attributes. */
const AT_ONCE = 8;

/** Returns the newest runs that match. The server lists open runs first, then those that ended last. */
export async function listRuns(client: Client, filter: ListFilter): Promise<RunList> {
  try {
    return await collect(client, filter, { byAttributes: true });
  } catch (error) {
    if (!isInvalidQuery(error)) throw error;
    return await collect(client, filter, { byAttributes: false });
  }
}

async function collect(
  client: Client,
  filter: ListFilter,
  options: { readonly byAttributes: boolean },
): Promise<RunList> {
  const rows: RunRow[] = [];
  let checked = 0;
  for await (const slice of slices(client.workflow.list({ query: queryFor(filter, options) }))) {
    const read = await Promise.all(slice.map((info) => readRunRow(client, info)));
    rows.push(...read.filter((row) => matches(row, filter)));
    checked += slice.length;
    if (rows.length > filter.limit || checked >= MAX_CHECKED) break;
  }
  return {
    rows: rows
      .slice(0, filter.limit)
      .toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)),
    more: rows.length > filter.limit || checked >= MAX_CHECKED,
  };
}

async function* slices(
  infos: AsyncIterable<WorkflowExecutionInfo>,
): AsyncGenerator<readonly WorkflowExecutionInfo[], void, undefined> {
  let slice: WorkflowExecutionInfo[] = [];
  for await (const info of infos) {
    slice.push(info);
    if (slice.length < AT_ONCE) continue;
    yield slice;
    slice = [];
  }
  if (slice.length > 0) yield slice;
}

/** Returns a query that runs without search attributes match too; `matches` checks those. */
function queryFor(
  { agent, status }: ListFilter,
  options: { readonly byAttributes: boolean },
): string {
  const isOpen = OPEN_STATUSES.some((name) => name === status);
  const conditions = [`WorkflowType = 'agent'`, `ExecutionStatus != 'ContinuedAsNew'`];
  if (status !== undefined) conditions.push(`CloseTime IS ${isOpen ? '' : 'NOT '}NULL`);
  if (options.byAttributes && isOpen) {
    conditions.push(`(AgentStatus = '${status}' OR AgentStatus IS NULL)`);
  }
  if (options.byAttributes && agent !== undefined) {
    conditions.push(`(${queryTerm('AgentName', agent)} OR AgentName IS NULL)`);
  }
  return conditions.join(' AND ');
}

function matches(row: RunRow, { agent, status }: ListFilter): boolean {
  if (agent !== undefined && row.agent !== agent) return false;
  if (status === undefined || row.status === status) return true;
  return row.status === 'done' && outcomeStatus(row.reason) === status;
}
