import { randomUUID } from 'node:crypto';
import { type Payload, TypedSearchAttributes, defaultPayloadConverter } from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import {
  type Activation,
  type ActivationJob,
  type ActivityResult,
  type WorkflowCreateOptions,
  type WorkflowCreator,
  msToTs,
  workerRuntime,
} from '../temporal/sdk-internals.js';
import { eventTime } from '../history/decode-event.js';
import { type TaskCommands, commandRecorded, takeCommand } from './commands.js';
import {
  type LocalActivity,
  type Outgoing,
  localMarker,
  type CachedWorkflow,
  type Query,
  type Segment,
  type Update,
} from './segment.js';
import { inOrder, toJob, createMachines } from './jobs.js';
import { NAMESPACE, idOf, kindOf } from './events.js';

/** What runs workflows. */
export interface WorkflowHost {
  readonly workflows: WorkflowCreator;
  /** Executes a local activity, and resolves with its end. */
  readonly runLocal: (segment: Segment, local: LocalActivity) => Promise<ActivityResult>;
  readonly now: () => number;
}

/** A task for the workflow. */
interface Task {
  /** The id of its `workflowTaskStarted` event. */
  readonly started: number;
  readonly bytes: number;
  /** Unix time in ms. */
  readonly at: number;
  readonly updates: readonly Update[];
  /** The recorded commands, in a replay. */
  readonly recorded: readonly RawEvent[] | null;
  /** The recorded flags of the SDK, in a replay. */
  readonly flags: readonly number[];
}

/** What the workflow has done in a task. */
export type TaskResult = Pick<TaskCommands, 'outgoing' | 'refused'> & {
  /** The flags of the SDK that the workflow uses; the history records them for its replay. */
  readonly flags: readonly number[];
};

/** Flags of the SDK's core that it writes into the history; a replay by the SDK needs them. */
export const CORE_FLAGS = [1, 2, 3];

/** Runs one task: passes on what has happened, until the workflow waits. */
export async function runTask(
  host: WorkflowHost,
  segment: Segment,
  task: Omit<Task, 'recorded' | 'flags'>,
): Promise<TaskResult> {
  const cached = await cachedWorkflow(host, segment);
  const result = await process(host, { segment, cached }, { ...task, recorded: null, flags: [] });
  cached.seen = task.started;
  return result;
}

/** Returns the cached workflow; without one, replays the history up to its last completed task. */
async function cachedWorkflow(host: WorkflowHost, segment: Segment): Promise<CachedWorkflow> {
  if (segment.cached !== null) return segment.cached;
  const cached = await create(host, segment);
  for (const { task, last } of recordedTasks(segment)) {
    const { outgoing } = await process(host, { segment, cached }, task);
    assertSame(segment, task, outgoing);
    outgoing.forEach((one, index) => commandRecorded(cached.machines, one, last + 1 + index));
    cached.seen = task.started;
  }
  segment.cached = cached;
  return cached;
}

/** Yields the completed tasks of a history, each with the id of its `workflowTaskCompleted` event. */
function* recordedTasks({
  events,
  updates,
}: Segment): Generator<{ readonly task: Task; readonly last: number }> {
  for (const event of events) {
    const completed = event.workflowTaskCompletedEventAttributes;
    if (!completed) continue;
    const last = idOf(event);
    const started = Number(completed.startedEventId);
    const begin = events[started - 1];
    if (begin === undefined) continue;
    const after = events.slice(last);
    const end = after.findIndex((one) => !isCommand(one));
    const recorded = end < 0 ? after : after.slice(0, end);
    const accepted = recorded.flatMap(
      ({ workflowExecutionUpdateAcceptedEventAttributes: one }) =>
        updates.get(one?.protocolInstanceId ?? '') ?? [],
    );
    const bytes = Number(begin.workflowTaskStartedEventAttributes?.historySizeBytes ?? 0);
    const flags = completed.sdkMetadata?.langUsedFlags ?? [];
    const task = { started, bytes, at: eventTime(begin), updates: accepted, recorded, flags };
    yield { last, task };
  }
}

const COMMANDS: ReadonlySet<string> = new Set([
  'timerStarted',
  'timerCanceled',
  'activityTaskScheduled',
  'activityTaskCancelRequested',
  'startChildWorkflowExecutionInitiated',
  'requestCancelExternalWorkflowExecutionInitiated',
  'workflowExecutionUpdateAccepted',
  'workflowExecutionUpdateCompleted',
  'workflowPropertiesModified',
  'upsertWorkflowSearchAttributes',
  'markerRecorded',
  'workflowExecutionCompleted',
  'workflowExecutionFailed',
  'workflowExecutionCanceled',
  'workflowExecutionContinuedAsNew',
]);

function isCommand(event: RawEvent): boolean {
  return COMMANDS.has(kindOf(event) ?? '');
}

/** Throws if the workflow does not repeat what the history has recorded. */
function assertSame(
  { workflowId }: Segment,
  { started, recorded }: Task,
  outgoing: readonly Outgoing[],
): void {
  const expected = (recorded ?? []).map((event) => String(kindOf(event)));
  const got = outgoing.map(({ kind }) => kind);
  const at = expected.findIndex((kind, index) => kind !== got[index]);
  if (at < 0 && got.length === expected.length) return;
  const place = at < 0 ? expected.length : at;
  throw new Error(
    `run ${workflowId} does not replay: task ${started}, command ${place + 1}: expected ` +
      `${expected[place] ?? 'none'}, got ${outgoing[place]?.kind ?? 'none'} ` +
      `(${outgoing[place]?.subject ?? ''}); workflow code must be deterministic`,
  );
}

interface Place {
  readonly segment: Segment;
  readonly cached: CachedWorkflow;
}

async function process(host: WorkflowHost, place: Place, task: Task): Promise<TaskResult> {
  const { segment, cached } = place;
  const commands: TaskCommands = {
    machines: cached.machines,
    taskQueue: segment.taskQueue,
    outgoing: [],
    jobs: [],
    locals: [],
    updates: segment.updates,
    refused: new Map(),
    patches: cached.patches,
  };
  let jobs = firstJobs(place, task);
  let flags: readonly number[] = [];
  do {
    flags = await activate(cached, task, { jobs, commands });
    jobs = commands.jobs.splice(0);
    for (const local of commands.locals.splice(0)) {
      const { marker, job } = await endLocal(host, segment, { local, task });
      commands.outgoing.push(marker);
      jobs.push(job);
    }
  } while (jobs.length > 0);
  return { ...commands, flags };
}

/** Returns what has happened since the last task, in the workflow's order. */
function firstJobs({ segment, cached }: Place, task: Task): ActivationJob[] {
  const fresh = segment.events.slice(cached.seen, task.started - 1);
  const isReplaying = task.recorded !== null;
  const patches = (task.recorded ?? []).flatMap(patchIn);
  return inOrder([
    ...patches.map((patchId) => ({ notifyHasPatch: { patchId } })),
    ...fresh.flatMap((event) => toJob(event, cached) ?? []),
    ...task.updates.map(({ id, request: { meta, input } }) => ({
      doUpdate: {
        id,
        protocolInstanceId: id,
        name: input?.name ?? '',
        input: input?.args?.payloads ?? [],
        headers: input?.header?.fields ?? {},
        meta: meta ?? null,
        runValidator: !isReplaying,
      },
    })),
  ]);
}

function patchIn({ markerRecordedEventAttributes: marker }: RawEvent): readonly string[] {
  if (marker?.markerName !== 'core_patch') return [];
  const data = marker.details?.['patch-data']?.payloads?.[0]?.data;
  const value: unknown = data ? JSON.parse(new TextDecoder().decode(data)) : null;
  const hasId = typeof value === 'object' && value !== null && 'id' in value;
  return hasId && typeof value.id === 'string' ? [value.id] : [];
}

async function activate(
  { workflow }: CachedWorkflow,
  { at, started, bytes, recorded, flags }: Task,
  { jobs, commands }: { readonly jobs: ActivationJob[]; readonly commands: TaskCommands },
): Promise<readonly number[]> {
  const activation: Activation = {
    timestamp: msToTs(at),
    isReplaying: recorded !== null,
    historyLength: started,
    historySizeBytes: workerRuntime().toInt64(bytes),
    continueAsNewSuggested: started > SUGGESTED_EVENTS || bytes > SUGGESTED_BYTES,
    availableInternalFlags: [...flags],
    jobs,
  };
  const { failed, successful } = await workflow.activate(activation);
  await workflow.getAndResetSinkCalls();
  if (failed) {
    throw new Error(`in memory: a workflow task failed: ${failed.failure?.message ?? 'unknown'}`);
  }
  for (const command of successful?.commands ?? []) takeCommand(commands, command);
  return successful?.usedInternalFlags ?? [];
}

/** When a server suggests continue-as-new. */
const SUGGESTED_EVENTS = 4_096;
const SUGGESTED_BYTES = 4 * 1024 * 1024;

/** Executes a local activity; in a replay, its end is in the history. */
async function endLocal(
  host: WorkflowHost,
  segment: Segment,
  { local, task }: { readonly local: LocalActivity; readonly task: Task },
): Promise<{ readonly marker: Outgoing<'markerRecorded'>; readonly job: ActivationJob }> {
  const end =
    task.recorded === null
      ? await host.runLocal(segment, local)
      : recordedEnd(task.recorded, local);
  const result = end.completed?.result ?? null;
  const failure = end.failed?.failure ?? end.cancelled?.failure ?? null;
  const marker = localMarker(local, { at: task.at, result, failure });
  const seq = local.scheduled.seq ?? 0;
  const resolution = end.completed ? { completed: { result } } : { failed: { failure } };
  return { marker, job: { resolveActivity: { seq, isLocal: true, result: resolution } } };
}

function recordedEnd(
  recorded: readonly RawEvent[],
  { scheduled: { seq } }: LocalActivity,
): ActivityResult {
  const marker = recorded.find(({ markerRecordedEventAttributes: one }) => {
    const data = one?.details?.['data']?.payloads?.[0]?.data;
    return data ? new TextDecoder().decode(data).includes(`"seq":${seq},`) : false;
  })?.markerRecordedEventAttributes;
  if (marker?.failure) return { failed: { failure: marker.failure } };
  return { completed: { result: marker?.details?.['result']?.payloads?.[0] ?? null } };
}

/** Answers a query by the workflow, which is replayed if it is not cached. */
export async function answerQuery(
  host: WorkflowHost,
  segment: Segment,
  query: Query,
): Promise<void> {
  if (!segment.events.some((event) => event.workflowTaskCompletedEventAttributes)) {
    query.refuse('the workflow must handle a workflow task before it can be queried');
    return;
  }
  const { workflow } = await cachedWorkflow(host, segment);
  const queryId = 'query';
  const job = { queryId, queryType: query.type, arguments: [...query.args] };
  const { failed, successful } = await workflow.activate(
    workerRuntime().toActivation({
      timestamp: msToTs(host.now()),
      jobs: [{ queryWorkflow: job }],
    }),
  );
  const answer = successful?.commands?.find(({ respondToQuery }) => respondToQuery)?.respondToQuery;
  const failure = failed?.failure ?? answer?.failed;
  if (failure || !answer?.succeeded) query.refuse(failure?.message ?? 'no answer');
  else query.answer(answer.succeeded.response);
}

/** The runtime sets its own source of random numbers. */
const REPLACED: WorkflowCreateOptions['info']['unsafe']['random'] = {
  random: Math.random,
  uuid4: () => randomUUID(),
  fillRandom: (bytes) => bytes,
};

async function create({ workflows, now }: WorkflowHost, segment: Segment): Promise<CachedWorkflow> {
  const started = segment.events[0]?.workflowExecutionStartedEventAttributes;
  const [first] = segment.events;
  const startedAt = first === undefined ? 0 : eventTime(first);
  const { workflowId, runId, firstRunId, workflowType, taskQueue, caller } = segment;
  const parent = caller && {
    parent: {
      workflowId: caller.segment.workflowId,
      runId: caller.segment.runId,
      namespace: NAMESPACE,
    },
  };
  const root = started?.rootWorkflowExecution;
  const previous = started?.continuedExecutionRunId;
  const randomnessSeed = workerRuntime().toInt64(seedOf(runId));
  const info: WorkflowCreateOptions['info'] = {
    workflowId,
    runId,
    workflowType,
    searchAttributes: valuesOf(started?.searchAttributes?.indexedFields),
    typedSearchAttributes: new TypedSearchAttributes(),
    ...parent,
    ...(root && { root: { workflowId: root.workflowId ?? '', runId: root.runId ?? '' } }),
    historyLength: 0,
    historySize: 0,
    continueAsNewSuggested: false,
    targetWorkerDeploymentVersionChanged: false,
    taskQueue,
    namespace: NAMESPACE,
    firstExecutionRunId: firstRunId,
    originalExecutionRunId: runId,
    ...(previous && { continuedFromExecutionRunId: previous }),
    startTime: new Date(startedAt),
    runStartTime: new Date(startedAt),
    taskTimeoutMs: 10_000,
    attempt: 1,
    currentBuildId: '',
    unsafe: { now, isReplaying: false, isReplayingHistoryEvents: false, random: REPLACED },
  };
  const workflow = await workflows.createWorkflow({
    info,
    randomnessSeed: [...randomnessSeed.toBytes()],
    now: startedAt,
    showStackTraceSources: false,
  });
  return { workflow, machines: createMachines(), randomnessSeed, patches: new Set(), seen: 0 };
}

/** Returns the search attributes with which a run was started. */
function valuesOf(
  fields: Readonly<Record<string, Payload>> | null | undefined,
): WorkflowCreateOptions['info']['searchAttributes'] {
  const entries = Object.entries(fields ?? {}).map(([name, payload]) => {
    const value: unknown = defaultPayloadConverter.fromPayload(payload);
    return [name, Array.isArray(value) ? value.map(String) : [String(value)]] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns a number that depends on the run alone. */
function seedOf(runId: string): number {
  return Number.parseInt(runId.replaceAll('-', '').slice(0, 12), 16);
}
