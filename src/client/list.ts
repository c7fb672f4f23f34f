import { isGrpcServiceError, type Client, type WorkflowExecutionInfo } from '@temporalio/client';
import type { Outcome } from '../core/outcome.js';
import type { RunStatusName } from '../core/status.js';
import { outcomeStatus, readRunRow, type RunRow } from './run-row.js';

export const LIVING = [
  'working',
  'waiting_message',
  'waiting_approval',
  'waiting_time',
  'blocked',
  'paused',
] as const satisfies readonly RunStatusName[];
export const ENDS = [
  'completed',
  'stopped',
  'cancelled',
  'failed',
] as const satisfies readonly Outcome['status'][];

export interface ListFilter {
  readonly agent?: string | undefined;
  /** As in the run's status, or how it ended. */
  readonly status?: (typeof LIVING)[number] | (typeof ENDS)[number] | 'done' | undefined;
  /** Rows at most. */
  readonly limit: number;
}

export interface RunList {
  /** Newest first. */
  readonly rows: readonly RunRow[];
  /** There may be more runs that fit. */
  readonly more: boolean;
}

/** What does not fit is passed over; so many runs are looked at. */
const LOOKED_AT = 1_000;
/** Runs whose history is read at the same time, where they have no attributes. */
const AT_ONCE = 8;
/** Of gRPC: what a namespace says to a query about attributes that it lacks. */
const INVALID_ARGUMENT = 3;

/** The newest runs that fit. The server hands out those that live, then those that ended last. */
export async function listRuns(client: Client, wish: ListFilter): Promise<RunList> {
  try {
    return await collect(client, wish, { byAttributes: true });
  } catch (error) {
    if (!isInvalidQuery(error)) throw error;
    return await collect(client, wish, { byAttributes: false });
  }
}

async function collect(
  client: Client,
  wish: ListFilter,
  how: { readonly byAttributes: boolean },
): Promise<RunList> {
  const rows: RunRow[] = [];
  let looked = 0;
  for await (const slice of slices(client.workflow.list({ query: queryFor(wish, how) }))) {
    const read = await Promise.all(slice.map((info) => readRunRow(client, info)));
    rows.push(...read.filter((row) => fits(row, wish)));
    looked += slice.length;
    if (rows.length > wish.limit || looked >= LOOKED_AT) break;
  }
  return {
    rows: rows
      .slice(0, wish.limit)
      .toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)),
    more: rows.length > wish.limit || looked >= LOOKED_AT,
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

/** Runs without attributes pass the query: what fits is decided by `fits`. */
function queryFor({ agent, status }: ListFilter, how: { readonly byAttributes: boolean }): string {
  const living = LIVING.some((name) => name === status);
  const conditions = [`WorkflowType = 'agent'`, `ExecutionStatus != 'ContinuedAsNew'`];
  if (status !== undefined) conditions.push(`CloseTime IS ${living ? '' : 'NOT '}NULL`);
  if (how.byAttributes && living) {
    conditions.push(`(AgentStatus = '${status}' OR AgentStatus IS NULL)`);
  }
  if (how.byAttributes && agent !== undefined) {
    conditions.push(`(AgentName = '${agent.replaceAll("'", "''")}' OR AgentName IS NULL)`);
  }
  return conditions.join(' AND ');
}

function fits(row: RunRow, { agent, status }: ListFilter): boolean {
  if (agent !== undefined && row.agent !== agent) return false;
  if (status === undefined || row.status === status) return true;
  return row.status === 'done' && outcomeStatus(row.reason) === status;
}

function isInvalidQuery(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code: number | null = isGrpcServiceError(cause) ? cause.code : null;
  return code === INVALID_ARGUMENT;
}
