import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { NoRunError, UnreadableError } from '../core/errors.js';
import { type RunStatus, isOpenStatus, statusName } from '../core/state/status.js';
import { isChecking } from '../core/state/status-text.js';
import type { Projection } from '../history/projection.js';
import { type RunReading, readRun } from '../history/read-run.js';
import type { ListFilter } from './list-filter.js';
import { type RunList, type SeesRow, listRuns } from './list.js';
import { type OpenRequest, listRequests } from './requests.js';
import { asStored } from './run-ids.js';
import { type RunRow, isInvalidQuery, readRunRow } from './run-row.js';
import { toRunStatus } from './status.js';
import { describeWorkflow, listWorkflows } from '../temporal/server-answers.js';

/** The status of a run, with what the runs that it has called wait for. */
export interface ReadStatus extends RunStatus {
  /**
   * The open requests of the runs of called agents below this one, oldest first. Each is decided on
   * its own `run`. Absent if there are none, or if no called agent is working.
   */
  readonly below?: readonly OpenRequest[];
  /**
   * The runs of called agents below this one that wait until something outside them is fixed, at most
   * 20. Absent if there are none.
   */
  readonly blockedBelow?: readonly BlockedRun[];
}

/** A run that is blocked below another one. */
export interface BlockedRun {
  /** The id of the blocked run. */
  readonly run: string;
  /** The name of its agent; null if unknown. */
  readonly agent: string | null;
  /** Why it is blocked, such as `provider_auth`. */
  readonly reason: string;
  /** For people: what is wrong, and what to do. */
  readonly message: string;
}

/** What the runs below a run wait for. */
export interface Below {
  /** Open requests, oldest first. */
  readonly requests: readonly OpenRequest[];
  readonly blocked: readonly BlockedRun[];
}

export const NOTHING_BELOW: Below = { requests: [], blocked: [] };

/** The activity under which a projection has the run of a called agent. */
const CALLED = 'agent';
/** The activity that notifies a person of a request. */
const NOTICE = 'notifyRequest';

/** Whether a called agent is working for the run. */
export function awaitsAgent({ inFlight, ended }: Pick<Projection, 'inFlight' | 'ended'>): boolean {
  return ended === null && [...inFlight.values()].some(({ activity }) => activity === CALLED);
}

/**
 * Whether the run only waits for called agents. A notice about a request does not count as work.
 */
export function awaitsOnlyAgents(view: Pick<Projection, 'inFlight' | 'ended'>): boolean {
  const idle = [CALLED, NOTICE];
  return (
    awaitsAgent(view) &&
    [...view.inFlight.values()].every(({ activity }) => idle.includes(activity))
  );
}

/**
 * Whether nothing is in flight, except notices about requests, which are retried for a long time.
 */
export function isIdle({ inFlight }: Pick<Projection, 'inFlight'>): boolean {
  return [...inFlight.values()].every(({ activity }) => activity === NOTICE);
}

/**
 * Returns the status of a run and, if it waits for a called agent, what the runs below it wait for.
 * Needs no worker.
 */
export async function readStatus(
  client: Client,
  run: RunReading,
  now: number,
  by?: string,
): Promise<ReadStatus> {
  const status = toRunStatus(run, now, by);
  const { id, description } = run;
  if (description === null || !awaitsAgent(run.view)) return status;
  const { requests, blocked } = await readBelow(client, { id, description });
  return {
    ...status,
    ...(requests.length > 0 && { below: requests }),
    ...(blocked.length > 0 && { blockedBelow: blocked }),
  };
}

/** The maximum number of blocked runs that are read. */
const MAX_BLOCKED = 20;

/** Returns what the runs below a run wait for, by two visibility queries and the blocked runs. */
export async function readBelow(
  client: Client,
  { id, description }: { readonly id: string; readonly description: WorkflowExecutionDescription },
): Promise<Below> {
  const root = description.rootExecution?.workflowId || id;
  // The id of a called run begins with that of its caller.
  const isBelow = (run: string): boolean => (root === id ? run !== id : run.startsWith(`${id}/`));
  const filter = { root: asStored(client, root), status: 'blocked', limit: MAX_BLOCKED } as const;
  const [{ requests }, { rows }] = await Promise.all([
    listRequests(client, { root }),
    listRuns(client, filter, { sees: async (row) => await Promise.resolve(isBelow(row.id)) }),
  ]);
  const blocked = rows.map((row) => blockedRun(client, row));
  return {
    requests: requests.filter(({ run }) => isBelow(run)),
    blocked: (await Promise.all(blocked)).flatMap((one) => one ?? []),
  };
}

/** The maximum number of blocked runs of the namespace that a list considers: one page of the server. */
const MAX_LISTED = 1_000;
const BLOCKED = `WorkflowType = 'agent' AND ExecutionStatus = 'Running' AND AgentStatus = 'blocked'`;

/**
 * Returns a page of runs as `listRuns` does, with the blocked runs below those that are working, by one more
 * query if any is.
 */
export async function listWithBelow(
  client: Client,
  filter: ListFilter,
  options: Parameters<typeof listRuns>[2] = {},
): Promise<RunList> {
  const list = await listRuns(client, filter, options);
  if (!list.rows.some(isWorking)) return list;
  const blocked = await blockedCalls(client, options.sees).catch((error: unknown) => {
    if (isInvalidQuery(error)) return [];
    throw error;
  });
  return { ...list, rows: list.rows.map((row) => withBlocked(row, blocked)) };
}

function isWorking({ status, closedAt }: RunRow): boolean {
  return status === 'working' && closedAt === null;
}

function withBlocked(row: RunRow, blocked: readonly string[]): RunRow {
  if (!isWorking(row)) return row;
  // The id of a called run begins with that of its caller.
  const below = blocked.filter((run) => run.startsWith(`${row.id}/`)).slice(0, MAX_BLOCKED);
  return below.length === 0 ? row : { ...row, blockedBelow: below };
}

/** The activity that checks a decision. */
const CHECK = 'checkDecision';

/** Whether a decision of a run waits for a worker to check it. */
export function checksDecision({ pendingActivities }: Described): boolean {
  return (pendingActivities ?? []).some(({ activityType: type }) => type?.name === CHECK);
}

type Described = Pick<WorkflowExecutionDescription['raw'], 'pendingActivities'>;

/** The maximum number of waiting runs of which a list reads what has come since they wrote their status, and at once. */
const [MAX_READ, AT_ONCE] = [200, 8];

/**
 * Returns rows in which a waiting run has the status that `readStatus` gives: a run writes the one that the server
 * lists, and needs a worker for that, also after a decision or a message.
 */
export async function withNewest(
  client: Client,
  rows: readonly RunRow[],
): Promise<readonly RunRow[]> {
  const newest = [...rows];
  const waiting = rows.flatMap((row, at) => (isWaiting(row) ? [{ row, at }] : []));
  for (let from = 0; from < Math.min(waiting.length, MAX_READ); from += AT_ONCE) {
    await Promise.all(
      waiting.slice(from, from + AT_ONCE).map(async ({ row, at }) => {
        newest[at] = await newestRow(client, row);
      }),
    );
  }
  return newest;
}

function isWaiting({ status, closedAt }: RunRow): boolean {
  return status.startsWith('waiting_') && closedAt === null;
}

/** Returns the row with the status that includes what the run has not processed; the same row if there is nothing. */
async function newestRow(client: Client, row: RunRow): Promise<RunRow> {
  try {
    const { raw } = await describeWorkflow(client, row.id);
    if (!raw.pendingWorkflowTask && !checksDecision(raw)) return row;
    const found = toRunStatus(await readRun(client, row.id), Date.now());
    const [status, { reason }] = [statusName(found), found];
    // Its end is listed with its time.
    if (!isOpenStatus(status)) return row;
    return { ...row, status, reason, ...(isChecking(found) && { checking: true }) };
  } catch {
    // The row that the server has listed says more than an error.
    return row;
  }
}

/** Returns the ids of the blocked runs that other runs have called. */
async function blockedCalls(client: Client, sees?: SeesRow): Promise<readonly string[]> {
  const found: string[] = [];
  let checked = 0;
  for await (const listed of listWorkflows(client, BLOCKED)) {
    const { parentExecution, workflowId } = listed.info;
    const isSeen = async () =>
      sees === undefined || (await sees(await readRunRow(client, listed), listed));
    if (parentExecution?.workflowId && (await isSeen())) found.push(workflowId);
    checked += 1;
    if (checked === MAX_LISTED) break;
  }
  return found;
}

/** Returns why a listed run is blocked; null if it no longer is. */
async function blockedRun(client: Client, { id: run, agent }: RunRow): Promise<BlockedRun | null> {
  try {
    const { status, reason, message } = toRunStatus(await readRun(client, run), Date.now());
    if (status !== 'blocked') return null;
    return { run, agent, reason: reason ?? 'unknown', message: message ?? '' };
  } catch (error) {
    if (UnreadableError.isInstance(error)) {
      return { run, agent, reason: 'unknown', message: error.message };
    }
    // The server has deleted it in the meantime.
    if (NoRunError.isInstance(error)) return null;
    throw error;
  }
}
