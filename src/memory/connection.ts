import { Client, type ConnectionLike } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import { GRPC, SEARCH_ATTRIBUTES } from '../temporal/grpc.js';
import { msToTs } from '../temporal/sdk-internals.js';
import { type PendingActivity, recordHeartbeat } from './activities.js';
import { parked } from './attempt.js';
import { toId, type Segment, type Update, append, isClosed } from './segment.js';
import { REJECT_DUPLICATE, requestCancel, terminate } from './effects.js';
import { NAMESPACE } from './events.js';
import { type MemoryServer, executionOf, report, startSegment } from './server.js';

type Service = ConnectionLike['workflowService'];
type RequestOf<M extends keyof Service> = Service[M] extends (request: infer R) => unknown
  ? R
  : never;

/** Numbers of `UpdateWorkflowExecutionLifecycleStage`. */
const STAGE = { accepted: 2, completed: 3 } as const;
/** `WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING`. */
const USE_EXISTING = 2;
/** `HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT`. */
const CLOSE_EVENT = 2;

/**
 * The signal of the caller whose call is beginning. Long polls begin at once; for other calls, the end
 * of the wait does not matter.
 */
interface Scope {
  signal: AbortSignal | undefined;
}

/** Creates the client of the server in memory: Temporal's own, on a connection without a socket. */
export function createMemoryClient(server: MemoryServer): Client {
  const scope: Scope = { signal: undefined };
  const service = createService(server, scope);
  const connection = {
    workflowService: service,
    operatorService: {
      listSearchAttributes: async () => ({
        customAttributes: Object.fromEntries(SEARCH_ATTRIBUTES.map((name) => [name, KEYWORD])),
      }),
    },
    plugins: [],
    close: async () => undefined,
    ensureConnected: async () => undefined,
    withDeadline: async <R>(_deadline: number | Date, work: () => Promise<R>) => await work(),
    withMetadata: async <R>(_metadata: unknown, work: () => Promise<R>) => await work(),
    async withAbortSignal<R>(signal: AbortSignal, work: () => Promise<R>) {
      const outer = scope.signal;
      scope.signal = signal;
      const done = work();
      scope.signal = outer;
      return await done;
    },
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only what perdure calls exists
  const like = connection as unknown as ConnectionLike;
  return new Client({ connection: like, namespace: NAMESPACE });
}

/** `INDEXED_VALUE_TYPE_KEYWORD`. */
const KEYWORD = 2;

/** Creates an error as a server returns it. */
function serviceError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: NO_METADATA });
}

const NO_METADATA = { get: (): readonly string[] => [] };

/** Waits until the condition holds. Rejects if the caller gives up. */
async function until(
  segment: Pick<Segment, 'watchers'>,
  signal: AbortSignal | undefined,
  isDone: () => boolean,
): Promise<void> {
  if (isDone()) return;
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      segment.watchers.delete(check);
      signal?.removeEventListener('abort', abort);
    };
    const check = (): void => {
      if (!isDone()) return;
      stop();
      resolve();
    };
    const abort = (): void => {
      stop();
      reject(serviceError(CANCELLED, 'the call was canceled'));
    };
    segment.watchers.add(check);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
  });
}

/** The gRPC status code of a call that its caller has canceled. */
const CANCELLED = 1;

interface Execution {
  readonly workflowId?: string | null;
  readonly runId?: string | null;
}

/** Returns the segment that a request names: by default the newest. Throws if there is none. */
function find({ runs }: MemoryServer, execution: Execution | null | undefined): Segment {
  const segments = runs.get(execution?.workflowId ?? '') ?? [];
  const runId = execution?.runId ?? '';
  const found =
    runId === '' ? segments.at(-1) : segments.find((segment) => segment.runId === runId);
  if (found === undefined) {
    throw serviceError(GRPC.notFound, `workflow not found for ID: ${execution?.workflowId ?? ''}`);
  }
  return found;
}

function findOpen(server: MemoryServer, execution: Execution | null | undefined): Segment {
  const found = find(server, execution);
  if (isClosed(found)) {
    throw serviceError(GRPC.notFound, 'workflow execution already completed');
  }
  return found;
}

function createService(server: MemoryServer, scope: Scope) {
  return {
    startWorkflowExecution: async (request: RequestOf<'startWorkflowExecution'>) => ({
      runId: start(server, request).runId,
      started: true,
    }),
    async signalWorkflowExecution(request: RequestOf<'signalWorkflowExecution'>) {
      const segment = findOpen(server, request.workflowExecution);
      signalRun(server, segment, request);
      return {};
    },
    async requestCancelWorkflowExecution(request: RequestOf<'requestCancelWorkflowExecution'>) {
      const { workflowExecution, reason, identity = null } = request;
      requestCancel(server, findOpen(server, workflowExecution), { cause: reason ?? '', identity });
      return {};
    },
    async terminateWorkflowExecution(request: RequestOf<'terminateWorkflowExecution'>) {
      terminate(server, findOpen(server, request.workflowExecution), request.reason ?? '');
      return {};
    },
    async queryWorkflow({ execution, query }: RequestOf<'queryWorkflow'>) {
      const segment = find(server, execution);
      const args = query?.queryArgs?.payloads ?? [];
      return await ask(server, segment, { type: query?.queryType ?? '', args });
    },
    async updateWorkflowExecution(request: RequestOf<'updateWorkflowExecution'>) {
      const segment = findOpen(server, request.workflowExecution);
      return await update(server, segment, { request, signal: scope.signal });
    },
    async pollWorkflowExecutionUpdate({ updateRef }: RequestOf<'pollWorkflowExecutionUpdate'>) {
      const segment = find(server, updateRef?.workflowExecution);
      const found = segment.updates.get(updateRef?.updateId ?? '');
      if (found === undefined) throw serviceError(GRPC.notFound, 'update not found');
      await reached(segment, found, { stage: STAGE.completed, signal: scope.signal });
      return stateOf(segment, found);
    },
    async executeMultiOperation({ operations }: RequestOf<'executeMultiOperation'>) {
      const [first, second] = operations ?? [];
      const request = second?.updateWorkflow ?? {};
      // A run that has ended still answers the updates that it has completed.
      const startWorkflow =
        completedBy(server, request) ?? start(server, first?.startWorkflow ?? {});
      const updated = await update(server, startWorkflow, { request, signal: scope.signal });
      const started = { runId: startWorkflow.runId, started: true };
      return { responses: [{ startWorkflow: started }, { updateWorkflow: updated }] };
    },
    getWorkflowExecutionHistory: async (request: RequestOf<'getWorkflowExecutionHistory'>) =>
      await readHistory(server, request, scope.signal),
    describeWorkflowExecution: async ({ execution }: RequestOf<'describeWorkflowExecution'>) =>
      describe(server, find(server, execution)),
    async recordActivityTaskHeartbeat({
      taskToken,
      details,
    }: RequestOf<'recordActivityTaskHeartbeat'>) {
      const token = Buffer.from(taskToken ?? []).toString('utf8');
      const cancelRequested = recordHeartbeat(server.activities, token, details?.payloads ?? []);
      if (cancelRequested === null) throw serviceError(GRPC.notFound, 'activity not found');
      return { cancelRequested };
    },
    resetStickyTaskQueue: async () => ({}),
    describeTaskQueue: async () => ({
      pollers: [{ identity: 'memory', lastAccessTime: msToTs(Date.now()) }],
    }),
  };
}

function start(server: MemoryServer, request: RequestOf<'startWorkflowExecution'>): Segment {
  const workflowId = request.workflowId ?? '';
  const existing = server.runs.get(workflowId)?.at(-1);
  if (existing !== undefined) {
    const isOpen = !isClosed(existing);
    if (isOpen && Number(request.workflowIdConflictPolicy) === USE_EXISTING) return existing;
    if (isOpen || Number(request.workflowIdReusePolicy) === REJECT_DUPLICATE) {
      throw serviceError(GRPC.alreadyExists, 'Workflow execution already started');
    }
  }
  const { input, header, memo, searchAttributes, retryPolicy, userMetadata } = request;
  return startSegment(server, {
    workflowId,
    workflowType: request.workflowType?.name ?? '',
    taskQueue: request.taskQueue?.name ?? '',
    started: {
      input: input ?? null,
      header: header ?? null,
      memo: memo ?? null,
      searchAttributes: searchAttributes ?? null,
      retryPolicy: retryPolicy ?? null,
    },
    ...(userMetadata && { userMetadata }),
  });
}

/** Returns the run that has ended and completed this update; undefined if there is none. */
function completedBy(
  { runs }: MemoryServer,
  { workflowExecution, request }: RequestOf<'updateWorkflowExecution'>,
): Segment | undefined {
  const last = runs.get(workflowExecution?.workflowId ?? '')?.at(-1);
  if (last === undefined || !isClosed(last)) return undefined;
  const known = last.updates.get(request?.meta?.updateId ?? '');
  return known !== undefined && known.outcome !== null ? last : undefined;
}

function signalRun(
  server: MemoryServer,
  segment: Segment,
  { signalName, input, header }: RequestOf<'signalWorkflowExecution'>,
): void {
  const attributes = {
    signalName: signalName ?? '',
    input: input ?? null,
    header: header ?? null,
  };
  const at = server.clock.now();
  const kind = 'workflowExecutionSignaled';
  report(server, segment, () => void append(segment, { kind, at, attributes }));
}

async function ask(
  server: MemoryServer,
  segment: Segment,
  { type, args }: { readonly type: string; readonly args: readonly Payload[] },
) {
  const payload = await new Promise<Payload | null | undefined>((answer, reject) => {
    const refuse = (message: string): void => reject(serviceError(GRPC.invalidArgument, message));
    segment.queries.push({ type, args, answer, refuse });
    server.wake(segment);
  });
  return { queryResult: { payloads: payload ? [payload] : [] } };
}

async function update(
  server: MemoryServer,
  segment: Segment,
  call: {
    readonly request: RequestOf<'updateWorkflowExecution'>;
    readonly signal: AbortSignal | undefined;
  },
) {
  const { request, waitPolicy } = call.request;
  const id = request?.meta?.updateId ?? '';
  const known = segment.updates.get(id);
  const one: Update = known ?? {
    id,
    request: request ?? {},
    acceptedEvent: null,
    outcome: null,
    isDelivered: false,
    waiting: new Set(),
  };
  if (known === undefined) {
    segment.updates.set(id, one);
    server.wake(segment);
  }
  const stage = waitPolicy?.lifecycleStage ?? STAGE.accepted;
  await reached(segment, one, { stage, signal: call.signal });
  return stateOf(segment, one);
}

async function reached(
  segment: Segment,
  one: Update,
  { stage, signal: given }: { readonly stage: number; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const isDone = (): boolean =>
    one.outcome !== null || (stage <= STAGE.accepted && one.acceptedEvent !== null);
  await until({ watchers: one.waiting }, given, () => isDone() || isClosed(segment));
  if (isDone()) return;
  if (segment.updates.has(one.id)) {
    throw serviceError(GRPC.notFound, 'workflow execution already completed');
  }
  // The next segment has it.
  await until({ watchers: one.waiting }, given, isDone);
}

function stateOf(segment: Segment, { id, outcome }: Update) {
  return {
    updateRef: { workflowExecution: executionOf(segment), updateId: id },
    stage: outcome === null ? STAGE.accepted : STAGE.completed,
    ...(outcome && { outcome }),
  };
}

async function readHistory(
  server: MemoryServer,
  request: RequestOf<'getWorkflowExecutionHistory'>,
  given: AbortSignal | undefined,
) {
  const { nextPageToken, waitNewEvent, execution } = request;
  const isEndOnly = Number(request.historyEventFilterType) === CLOSE_EVENT;
  const [runId = '', from = '0'] = Buffer.from(nextPageToken ?? [])
    .toString('utf8')
    .split(' ');
  const segment = find(server, runId === '' ? execution : { ...execution, runId });
  const begin = Number(from);
  const hasNews = (): boolean => isClosed(segment) || (!isEndOnly && segment.events.length > begin);
  if (waitNewEvent && !hasNews()) {
    await parked(server.activities, () => until(segment, given, hasNews));
  }
  const events = isEndOnly ? segment.events.slice(-1) : segment.events.slice(begin);
  const isLast = isClosed(segment) || !waitNewEvent;
  const token = isLast ? '' : `${segment.runId} ${segment.events.length}`;
  return { history: { events }, nextPageToken: Buffer.from(token) };
}

function describe(server: MemoryServer, segment: Segment) {
  const { workflowId, runId, firstRunId, startedAt, closedAt, caller, events } = segment;
  const root = events[0]?.workflowExecutionStartedEventAttributes?.rootWorkflowExecution;
  const pending = [...(server.activities.pending.get(segment)?.values() ?? [])];
  return {
    executionConfig: {
      taskQueue: { name: segment.taskQueue },
      userMetadata: userMetadataOf(events[0]),
    },
    workflowExecutionInfo: {
      execution: { workflowId, runId },
      type: { name: segment.workflowType },
      startTime: msToTs(startedAt),
      executionTime: msToTs(startedAt),
      ...(closedAt !== null && { closeTime: msToTs(closedAt) }),
      status: segment.status,
      historyLength: toId(events.length),
      historySizeBytes: toId(segment.bytes),
      memo: { fields: Object.fromEntries(segment.memo) },
      searchAttributes: { indexedFields: Object.fromEntries(segment.attributes) },
      taskQueue: segment.taskQueue,
      firstRunId,
      rootExecution: root ?? { workflowId, runId },
      ...(caller && { parentExecution: executionOf(caller.segment) }),
    },
    pendingActivities: pending.map(describeActivity),
    pendingChildren: [],
    callbacks: [],
  };
}

function describeActivity(activity: PendingActivity) {
  const { attributes, attempt, current, cancelRequested, dueAt, startedAt } = activity;
  const { details, lastFailure } = activity;
  const running = cancelRequested === null ? STATE.started : STATE.cancelRequested;
  return {
    activityId: attributes.activityId ?? '',
    activityType: attributes.activityType ?? null,
    state: current === null ? STATE.scheduled : running,
    attempt: current === null ? attempt + 1 : attempt,
    lastStartedTime: msToTs(startedAt),
    ...(current === null ? { nextAttemptScheduleTime: msToTs(dueAt) } : {}),
    scheduledTime: msToTs(dueAt),
    ...(details.length > 0 && { heartbeatDetails: { payloads: [...details] } }),
    ...(lastFailure && { lastFailure }),
  };
}

/** Numbers of `PendingActivityState`. */
const STATE = { scheduled: 1, started: 2, cancelRequested: 3 } as const;

function userMetadataOf(event: RawEvent | undefined): RawEvent['userMetadata'] {
  return event?.userMetadata ?? null;
}
