import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import { decidersProblem } from '../core/definition/rules.js';
import { InputError, NoRunError, UnreadableError } from '../core/errors.js';
import { commandLine } from '../core/requests/commands.js';
import { requestMemo } from '../core/requests/request-memo.js';
import type { RunStatus } from '../core/state/status.js';
import { visible, actorText } from '../core/state/summaries.js';
import { isObject, textField } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { OFFERED, type Request, type RequestKind } from '../core/transcript/request.js';
import { readRun } from '../history/read-run.js';
import type { BlobStore } from '../storage/blob-store.js';
import { type FoundWorkflow, queryTerm, withoutAttributes } from './run-row.js';
import { toRunStatus } from './status.js';

/** The field of a run's memo that contains its open requests, oldest first. */
const MEMO_FIELD = 'requests';
/** The field that contains their number if there are too many for the memo. */
const MEMO_TOTAL = 'requestsTotal';

/** An open request in the memo of its run. `client.request` reads the whole request. */
export interface OpenRequest extends Pick<
  Request,
  'id' | 'kind' | 'tool' | 'digest' | 'expiresAt' | 'raisedAt' | 'fix' | 'checking'
> {
  /** The id of the run that asks. */
  readonly run: string;
  /** The name of the run's agent; null if unknown. */
  readonly agent: string | null;
  /** For people: at most 300 characters; of a plan, its actions in at most 900. */
  readonly shown: string;
  /** Who may decide, as in `Request`. Absent: anyone, or the run was begun by an earlier version. */
  readonly deciders?: Request['deciders'];
}

/** The open requests in a memo. */
interface MemoRequests {
  readonly requests: readonly OpenRequest[];
  /** The number of open requests that did not fit in the memo. */
  readonly more: number;
}

/**
 * Reads the requests in the memo of a run. Skips everything that is not a request: a memo may come
 * from another version, or from another program.
 */
export function memoRequests(
  memo: Readonly<Record<string, unknown>> | undefined,
  of: Pick<OpenRequest, 'run' | 'agent'>,
): MemoRequests {
  const list: unknown = memo?.[MEMO_FIELD];
  const total: unknown = memo?.[MEMO_TOTAL];
  const requests = (Array.isArray(list) ? list : []).flatMap((each) => readOne(each, of) ?? []);
  const counted = typeof total === 'number' && Number.isSafeInteger(total) ? total : 0;
  return { requests, more: Math.max(0, counted - requests.length) };
}

function readOne(value: unknown, of: Pick<OpenRequest, 'run' | 'agent'>): OpenRequest | null {
  if (!isObject(value)) return null;
  const { kind, expiresAt = null, raisedAt, tool, checking, deciders } = value;
  const [id, digest] = [textField(value, 'id'), textField(value, 'digest')];
  if (id === '' || !/^[0-9a-f]{64}$/.test(digest) || !isKind(kind)) return null;
  if (!isTime(raisedAt) || !(expiresAt === null || isTime(expiresAt))) return null;
  const request: OpenRequest = {
    ...of,
    id,
    kind,
    ...(typeof tool === 'string' && { tool }),
    digest,
    shown: textField(value, 'shown'),
    raisedAt,
    expiresAt,
    fix: textField(value, 'fix'),
    ...(isDeciders(deciders) && { deciders }),
  };
  return checking === true ? beingChecked(request) : request;
}

/** Returns a request about which no decision can be made, since one is being checked: its command shows it. */
export function beingChecked(request: OpenRequest): OpenRequest {
  const fix = commandLine('perdure', ['inbox', request.run, request.id]);
  return { ...request, fix, checking: true };
}

function isKind(value: unknown): value is RequestKind {
  return typeof value === 'string' && Object.hasOwn(OFFERED, value);
}

function isDeciders(value: unknown): value is Request['deciders'] {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every((one) => one !== undefined && decidersProblem(one, 'deciders') === null);
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** Selects open requests; default: all in the namespace. */
export interface RequestFilter {
  /** Only requests of this agent's runs. Default: any. */
  readonly agent?: string | undefined;
  /**
   * Only requests of this run, and of all runs that agents have called below it. Default: any run.
   */
  readonly root?: string | undefined;
  /** Only requests of this run. Default: any run. */
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

/** Whether the reader of a list may see the requests of a run. */
type SeesRequests = (
  run: { readonly run: string; readonly agent: string | null },
  info: WorkflowExecutionInfo,
) => Promise<boolean>;

/**
 * Returns the open requests, oldest first, from the memos of the runs. Needs no worker. `sees`: the
 * list is as if no other run existed, also its `more`. `signal`: ends the reading, with its reason.
 */
export async function listRequests(
  client: Client,
  filter: RequestFilter = {},
  {
    sees = () => Promise.resolve(true),
    signal,
  }: { readonly sees?: SeesRequests | undefined; readonly signal?: AbortSignal } = {},
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
    signal?.throwIfAborted();
    const { info } = found;
    const agent = info.typedSearchAttributes.get(AGENT) ?? null;
    if (!(await sees({ run: info.workflowId, agent }, info))) continue;
    runs += 1;
    if (runs > MAX_RUNS) break;
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

/**
 * Returns an open request of a run with all of its arguments. Needs no worker. Rejects with a
 * `NoRunError`, with an `InputError` if the run has no such open request, and with a `BlobError` if
 * the arguments are in the blob store and cannot be read.
 */
export async function readRequest(
  client: Client,
  { run, id }: { readonly run: string; readonly id: string },
  blobs: BlobStore,
): Promise<Request> {
  const status = toRunStatus(await readRun(client, run), Date.now());
  const request = status.pending.find((one) => one.id === id);
  if (request === undefined) {
    throw new InputError(decidedText(status, id) ?? noRequest(run, id, status));
  }
  return await withArguments(request, blobs);
}

/** Returns the request with arguments that are in the blob store. Rejects with a `BlobError`. */
export async function withArguments(request: Request, blobs: BlobStore): Promise<Request> {
  const { argumentsBlob, parsedBlob } = request;
  return {
    ...request,
    ...(argumentsBlob && { arguments: await blobs.get(argumentsBlob) }),
    ...(parsedBlob && { parsed: await blobs.get(parsedBlob) }),
  };
}

/** Returns requests as `withArguments` does. */
export async function withAllArguments(
  requests: readonly Request[],
  blobs: BlobStore,
): Promise<readonly Request[]> {
  return await Promise.all(requests.map((one) => withArguments(one, blobs)));
}

/**
 * Returns who decided what about a request, by its id or that of its call, and when; null if the
 * run does not know of such a decision.
 */
export function decidedText(
  { id: run, ...decided }: Pick<RunStatus, 'id' | 'decisions'>,
  name: string,
  formatTime?: (at: number) => string,
): string | null {
  const { request = name } = decisionOn(decided, name) ?? {};
  const text = decisionText(decided, name, formatTime);
  if (text === null) return null;
  const again = text.startsWith('expired') ? 'can no longer be decided' : 'cannot be decided again';
  return `request: ${visible(request)} of run ${visible(run)} ${text}, and ${again}`;
}

/**
 * Returns what was decided about a request, such as `was decided by ann (deny) at …`; null if the
 * run does not know of such a decision. `formatTime`: formats a Unix time in ms; default: in ISO 8601.
 */
export function decisionText(
  decided: Pick<RunStatus, 'decisions'>,
  name: string,
  formatTime: (at: number) => string = isoTime,
): string | null {
  const made = decisionOn(decided, name);
  if (made?.as === undefined) return null;
  const { as, by, at } = made;
  const when = formatTime(at);
  if (as === 'expired')
    return `expired${by === undefined ? '' : ` by ${actorText(made)}`} at ${when}`;
  return `was decided by ${actorText(made)} (${as}) at ${when}`;
}

function isoTime(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Returns the newest accepted decision about a request, by its id or that of its call. */
function decisionOn({ decisions = [] }: Pick<RunStatus, 'decisions'>, name: string) {
  return decisions.findLast(
    ({ request, call, refused }) =>
      request !== undefined && refused === undefined && (request === name || call === name),
  );
}

/** Returns the message for a request that a run does not have; it names those that it has. */
export function noRequest(
  run: string,
  id: string,
  { pending, cancel }: Pick<RunStatus, 'pending' | 'cancel'>,
): string {
  const open = pending.map((one) => one.id).join(', ');
  const none = cancel === undefined ? 'it has no open request' : 'its cancel is requested';
  const known = open === '' ? none : `its open requests are ${open}`;
  return `request: expected an open request of run ${visible(run)}, got ${visible(id)}; ${known}`;
}
