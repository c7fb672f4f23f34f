import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { InputError, NoRunError, UnreadableError } from '../core/errors.js';
import { requestMemo } from '../core/requests/memo.js';
import { show } from '../core/text/format-value.js';
import { readRun } from '../history/read-run.js';
import { memoRequests, type MemoRequests, type OpenRequest } from './memo-requests.js';
import { queryTerm, withoutAttributes, type FoundWorkflow } from './queries.js';
import { toRunStatus } from './status.js';

/** Selects open requests; default: all in the namespace. */
export interface RequestFilter {
  /** Only requests of this agent's runs. */
  readonly agent?: string | undefined;
  /** Only requests of this run, and of all runs that agents have called below it. */
  readonly root?: string | undefined;
  /** Only requests of this run. */
  readonly run?: string | undefined;
}

/** The open requests that match a filter. */
export interface RequestList {
  /** Oldest first. */
  readonly requests: readonly OpenRequest[];
  /** Whether there are more open requests than these. */
  readonly more: boolean;
  /** Waiting runs whose requests are encoded, and the client lacks the codec or the key. */
  readonly unreadable: readonly UnreadableRun[];
}

/** A run that could not be read. */
export interface UnreadableRun {
  readonly run: string;
  /** What is encoded, and what to do. */
  readonly why: string;
}

const AGENT = defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD);
const STATUS = defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD);
const WAITING = 'waiting_decision';
/** Statuses of runs that may also have open requests. */
const HELD = ['paused', 'blocked'];
/** The maximum number of runs to read. */
const MAX_RUNS = 10_000;
/** The maximum number of histories read at the same time. */
const AT_ONCE = 8;

/** Returns the open requests, oldest first, from the memos of the runs. Needs no worker. */
export async function listRequests(
  client: Client,
  filter: RequestFilter = {},
): Promise<RequestList> {
  const read: MemoRequests[] = [];
  const unreadable: UnreadableRun[] = [];
  const readUnsure = async (): Promise<void> => {
    const all = await Promise.all(unsure.splice(0).map((each) => openIn(client, each)));
    for (const found of all) {
      if ('why' in found) unreadable.push(found);
      else read.push(found);
    }
  };
  const unsure: WorkflowExecutionInfo[] = [];
  let runs = 0;
  for await (const found of withoutAttributes(client, queriesFor(filter))) {
    runs += 1;
    if (runs > MAX_RUNS) break;
    const { info } = found;
    if (found.unreadable !== null) {
      unreadable.push({ run: info.workflowId, why: found.unreadable });
      continue;
    }
    const memo = memoOf(info);
    const isEmpty = memo.requests.length === 0;
    const waits = waitsForDecision(found);
    if (isEmpty && !waits) continue;
    if (waits && !isEmpty) read.push(memo);
    else unsure.push(info);
    if (unsure.length === AT_ONCE) await readUnsure();
  }
  await readUnsure();
  const { agent } = filter;
  return {
    requests: read
      .flatMap(({ requests }) => requests)
      .filter((request) => agent === undefined || request.agent === agent)
      .toSorted((one, other) => one.raisedAt - other.raisedAt),
    more: runs > MAX_RUNS || read.some(({ more }) => more > 0),
    unreadable,
  };
}

function queriesFor({ agent, root, run }: RequestFilter): { query: string; otherwise: string } {
  const conditions = [`WorkflowType = 'agent'`, `ExecutionStatus = 'Running'`];
  if (root !== undefined) conditions.push(queryTerm('RootWorkflowId', idIn('root', root)));
  if (run !== undefined) conditions.push(queryTerm('WorkflowId', idIn('run', run)));
  const otherwise = conditions.join(' AND ');
  const statuses = [WAITING, ...HELD].map((status) => queryTerm('AgentStatus', status));
  conditions.push(`(${statuses.join(' OR ')})`);
  if (agent !== undefined) conditions.push(queryTerm('AgentName', idIn('agent', agent)));
  return { query: conditions.join(' AND '), otherwise };
}

function idIn(field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new InputError(`${field}: expected a text, got ${show(value)}`);
}

function memoOf({ workflowId: run, memo, typedSearchAttributes }: WorkflowExecutionInfo) {
  return memoRequests(memo, { run, agent: typedSearchAttributes.get(AGENT) ?? null });
}

/** Whether the run waits for decisions: its memo then has no request that is decided. */
function waitsForDecision({ info, byAttributes }: FoundWorkflow): boolean {
  return byAttributes && info.typedSearchAttributes.get(STATUS) === WAITING;
}

/** Returns the open requests of a run according to its history. */
async function openIn(
  client: Client,
  { workflowId: run }: WorkflowExecutionInfo,
): Promise<MemoRequests | UnreadableRun> {
  try {
    const { pending, agent } = toRunStatus(await readRun(client, run), Date.now());
    return memoRequests({ ...requestMemo(pending) }, { run, agent: agent || null });
  } catch (error) {
    if (UnreadableError.isInstance(error)) return { run, why: error.message };
    // It ended, and the server deleted it in the meantime.
    if (!NoRunError.isInstance(error)) throw error;
    return { requests: [], more: 0 };
  }
}
