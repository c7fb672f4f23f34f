import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import { NoRunError, UnreadableError } from '../core/errors.js';
import {
  type RunPhase,
  type RunStatusName,
  isOpenStatus,
  statusName,
} from '../core/state/status.js';
import { COMPLETE_REASONS, type Outcome, STOP_REASONS } from '../core/transcript/outcome.js';
import { newerMemo, newerPatch, writtenByNewer } from '../history/projection.js';
import { readRun } from '../history/read-run.js';
import { GRPC, grpcCode } from '../temporal/grpc.js';
import { type ListedWorkflow, listWorkflows } from '../temporal/server-answers.js';
import { type GivenNames, readGiven } from '../temporal/stored-ids.js';
import { toRunStatus } from './status.js';

export { queryTerm } from '../temporal/query-term.js';

/** A run as a list shows it. */
export interface RunRow {
  /** The id that the server has: a hash, if ids are hashed; `givenId` is then the one that the caller chose. */
  readonly id: string;
  /** The id that the caller chose, or that was generated; absent if `id` is not its hash. */
  readonly givenId?: string;
  /** Temporal's run id of the newest segment: several runs may have used the same id. */
  readonly runId: string;
  /** Null if unknown. */
  readonly agent: string | null;
  readonly status: RunStatusName;
  /** The reason from the run's status. */
  readonly reason: string | null;
  /** ISO 8601. */
  readonly startedAt: string;
  /** ISO 8601; null while the run is open. */
  readonly closedAt: string | null;
  /** The task queue of the workers that execute the run. */
  readonly taskQueue: string;
  /** The tags that the run was started with. */
  readonly tags: readonly string[];
  /** For whom the run works; absent if it was started without a tenant. */
  readonly tenant?: string;
  /** The tenant that the caller named; absent if `tenant` is not its hash. */
  readonly givenTenant?: string;
  /**
   * The runs of called agents below this one that are blocked, in a list for people; absent if there are none.
   * `client.status` says why.
   */
  readonly blockedBelow?: readonly string[];
  /**
   * Whether each decision for which the run waits has been made, and a worker has yet to check it; only in the list of
   * the command. Absent if not.
   */
  readonly checking?: true;
  /**
   * Why the rest of the row may be incomplete: the run's memo or history is encoded, and the client
   * lacks the codec or the key; a newer version of perdure wrote the run; or the server deleted it
   * while it was listed. Absent if everything could be read.
   */
  readonly unreadable?: string;
}

const [AGENT, STATUS, REASON] = (['AgentName', 'AgentStatus', 'AgentReason'] as const).map((name) =>
  defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
);

/** The patches in the run's history, which the SDK writes for itself. */
const PATCHES = defineSearchAttributeKey('TemporalChangeVersion', SearchAttributeType.KEYWORD_LIST);

/**
 * Reads a row from the search attributes; or from the history if the namespace lacks them or the
 * run has not written any, such as a run that never loaded its agent.
 */
export async function readRunRow(
  client: Client,
  { info, unreadable }: ListedWorkflow,
): Promise<RunRow> {
  const row = rowFromAttributes(info) ?? (await rowFromHistory(client, info));
  const why =
    unreadable ??
    newerPatch(info.typedSearchAttributes.get(PATCHES) ?? []) ??
    newerMemo(info.memo?.['schema']);
  return why === null ? row : { unreadable: why, ...row };
}

/** Returns the status of an outcome from its reason, which is what the server has of it. */
export function outcomeStatus(reason: string | null): Outcome['status'] {
  if (COMPLETE_REASONS.some((each) => each === reason)) return 'completed';
  if (STOP_REASONS.some((each) => each === reason)) return 'stopped';
  return reason === 'cancelled' ? 'cancelled' : 'failed';
}

function rowFromAttributes(info: WorkflowExecutionInfo): RunRow | null {
  const { typedSearchAttributes: written } = info;
  const [agent, status, reason] = [AGENT, STATUS, REASON].map((key) => key && written.get(key));
  if (agent === undefined || status === undefined) return null;
  const id = info.workflowId;
  if (info.closeTime === undefined) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by our own workflow
    const phase = status as RunPhase;
    // Visibility does not know yet that it has closed, or it archives its messages first: the history tells.
    if (phase === 'done') return null;
    return {
      id,
      agent,
      status: phase,
      reason: reason ?? null,
      ...placeOf(info),
      ...memoOf(info),
    };
  }
  // A run that Temporal ended could not record its end.
  const end = (!isOpenStatus(status) && reason) || endByTemporal(info);
  const how = outcomeStatus(end);
  return { id, agent, status: how, reason: end, ...placeOf(info), ...memoOf(info) };
}

async function rowFromHistory(client: Client, info: WorkflowExecutionInfo): Promise<RunRow> {
  const { workflowId: id, closeTime } = info;
  try {
    const run = await readRun(client, id);
    const found = toRunStatus(run, Date.now());
    const { agent, reason } = found;
    const status = statusName(found);
    // The memo contains the tags as soon as the agent is loaded.
    const { tags, tenant } = run.view.input ?? {};
    // Visibility may not know yet that the run has closed, which its status already says.
    const place = placeOf(run.description ?? info);
    const row = {
      id,
      agent: agent || null,
      status,
      reason,
      ...place,
      ...memoOf({ memo: { ...(run.description ?? info).memo, tags, tenant } }),
    };
    const newer = writtenByNewer(run.events);
    return newer === null ? row : { ...row, unreadable: newer };
  } catch (error) {
    // The server may have deleted it in the meantime.
    const isUnreadable = UnreadableError.isInstance(error);
    if (!isUnreadable && !NoRunError.isInstance(error)) throw error;
    const reason = closeTime === undefined ? null : endByTemporal(info);
    const status = reason === null ? 'working' : endStatus(reason);
    const row = { id, agent: null, status, reason, ...placeOf(info), ...memoOf(info) } as const;
    const why = isUnreadable ? error.message : 'the server has deleted it in the meantime';
    return { ...row, unreadable: why };
  }
}

/** Returns the status of a run of which only Temporal's word for its end is known. */
function endStatus(end: string): RunStatusName {
  // A run that a limit has stopped is completed for Temporal.
  return end === 'completed' ? 'unknown' : outcomeStatus(end);
}

function endByTemporal({ status }: WorkflowExecutionInfo): string {
  return status.name.toLowerCase();
}

function placeOf(
  info: Pick<WorkflowExecutionInfo, 'runId' | 'taskQueue' | 'memo' | 'startTime' | 'closeTime'>,
): Pick<RunRow, 'runId' | 'startedAt' | 'closedAt' | 'taskQueue'> {
  return {
    runId: info.runId,
    taskQueue: info.taskQueue,
    startedAt: startOf(info).toISOString(),
    closedAt: info.closeTime?.toISOString() ?? null,
  };
}

/** Returns when the server accepted the run, not its newest segment. */
export function startOf({
  memo,
  startTime,
}: Pick<WorkflowExecutionInfo, 'memo' | 'startTime'>): Date {
  const startedAt: unknown = memo?.['startedAt'];
  return typeof startedAt === 'number' ? new Date(startedAt) : startTime;
}

function memoOf({
  memo,
}: Pick<WorkflowExecutionInfo, 'memo'>): Pick<RunRow, 'tags' | 'tenant' | keyof GivenNames> {
  const { tags, tenant }: Record<string, unknown> = memo ?? {};
  return {
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
    ...(typeof tenant === 'string' && { tenant }),
    ...readGiven(memo),
  };
}

/**
 * Returns whether the server refused a query, as it does if the namespace lacks its search
 * attributes.
 */
export function isInvalidQuery(error: unknown): boolean {
  return grpcCode(error) === GRPC.invalidArgument;
}

/**
 * A workflow that a query found. `byAttributes` is true for the query that uses search attributes.
 */
export interface FoundWorkflow extends ListedWorkflow {
  readonly byAttributes: boolean;
}

/**
 * Yields the workflows that `query` finds. If the namespace lacks its search attributes, yields
 * what `otherwise` finds, which uses none.
 */
export async function* withoutAttributes(
  client: Client,
  { query, otherwise }: { readonly query: string; readonly otherwise: string },
): AsyncGenerator<FoundWorkflow, void, undefined> {
  try {
    for await (const found of listWorkflows(client, query)) yield { ...found, byAttributes: true };
  } catch (error) {
    if (!isInvalidQuery(error)) throw error;
    for await (const found of listWorkflows(client, otherwise)) {
      yield { ...found, byAttributes: false };
    }
  }
}
