import { createHash } from 'node:crypto';
import type { RawEvent } from '../history/history-event.js';
import { type WorkflowCreator, msToTs } from '../temporal/sdk-internals.js';
import type { ActivityHost } from './activities.js';
import type { VirtualClock } from './clock.js';
import { toId, STATUS, type Segment, append, isClosed, notifyWatchers } from './segment.js';
import { type AttributesOf, NAMESPACE } from './events.js';

/** A Temporal server with one worker, in this process. */
export interface MemoryServer {
  readonly clock: VirtualClock;
  readonly workflows: WorkflowCreator;
  readonly activities: ActivityHost;
  /** All segments of each workflow id, oldest first. */
  readonly runs: Map<string, Segment[]>;
  /** Ends everything with an error that no run can handle. */
  readonly fail: (error: unknown) => void;
  /** Runs the tasks and queries of a segment, if that is not under way. */
  readonly wake: (segment: Segment) => void;
  /** The number of segments that have begun. */
  segments: number;
}

/** What a new segment begins with. */
interface NewSegment {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly started: Pick<
    AttributesOf<'workflowExecutionStarted'>,
    'input' | 'header' | 'memo' | 'searchAttributes' | 'retryPolicy'
  >;
  readonly userMetadata?: RawEvent['userMetadata'];
  readonly caller?: Segment['caller'];
  readonly root?: NonNullable<AttributesOf<'workflowExecutionStarted'>['rootWorkflowExecution']>;
  /** The segment that this one continues. */
  readonly previous?: Segment;
  readonly runId?: string;
}

/** Returns an id for a new segment, which depends on the ids and the order of all segments. */
export function newRunId(server: MemoryServer, workflowId: string): string {
  server.segments += 1;
  const hex = createHash('sha256').update(`${workflowId} ${server.segments}`).digest('hex');
  return [8, 4, 4, 4, 12].map((size, at) => hex.slice(at * 12, at * 12 + size)).join('-');
}

/** Starts a segment and its first workflow task. */
export function startSegment(server: MemoryServer, given: NewSegment): Segment {
  const { workflowId, workflowType, taskQueue, previous, caller = null, root, started } = given;
  const now = server.clock.now();
  const runId = given.runId ?? newRunId(server, workflowId);
  const firstRunId = previous?.firstRunId ?? runId;
  const segment: Segment = {
    workflowId,
    runId,
    firstRunId,
    workflowType,
    taskQueue,
    startedAt: now,
    closedAt: null,
    status: STATUS.running,
    events: [],
    bytes: 0,
    memo: new Map(Object.entries(started.memo?.fields ?? {})),
    attributes: new Map(Object.entries(started.searchAttributes?.indexedFields ?? {})),
    caller,
    scheduled: null,
    inTask: false,
    isDraining: false,
    buffered: [],
    cached: null,
    updates: new Map(),
    queries: [],
    timers: new Map(),
    children: new Map(),
    startedEvent: 0,
    watchers: new Set(),
  };
  server.runs.set(workflowId, [...(server.runs.get(workflowId) ?? []), segment]);
  append(segment, {
    kind: 'workflowExecutionStarted',
    at: now,
    ...(given.userMetadata && { userMetadata: given.userMetadata }),
    attributes: {
      ...started,
      workflowType: { name: workflowType },
      taskQueue: { name: taskQueue },
      workflowTaskTimeout: TASK_TIMEOUT,
      originalExecutionRunId: runId,
      firstExecutionRunId: firstRunId,
      attempt: 1,
      workflowId,
      ...(root && { rootWorkflowExecution: root }),
      ...(caller && {
        parentWorkflowNamespace: NAMESPACE,
        parentWorkflowExecution: executionOf(caller.segment),
        parentInitiatedEventId: toId(caller.initiated),
      }),
      ...(previous && { continuedExecutionRunId: previous.runId, initiator: 1 }),
    },
  });
  scheduleTask(server, segment);
  return segment;
}

/** Milliseconds after which a worker that has died in a workflow task is noticed. */
export const TASK_MS = 10_000;
const TASK_TIMEOUT = msToTs(TASK_MS);

/** Returns the ids of a segment as messages name it. */
export function executionOf({ workflowId, runId }: Segment) {
  return { workflowId, runId };
}

/** Schedules a workflow task, if none is scheduled. */
export function scheduleTask(server: MemoryServer, segment: Segment): void {
  if (isClosed(segment) || segment.scheduled !== null) return;
  segment.scheduled = append(segment, {
    kind: 'workflowTaskScheduled',
    at: server.clock.now(),
    attributes: {
      taskQueue: { name: segment.taskQueue },
      startToCloseTimeout: TASK_TIMEOUT,
      attempt: 1,
    },
  });
  server.wake(segment);
}

/** Appends events from outside, now or after the task under way, and schedules a task. */
export function report(
  server: MemoryServer,
  segment: Segment,
  events: () => void,
  timer?: number,
): void {
  if (isClosed(segment)) return;
  if (segment.inTask) {
    segment.buffered.push({ append: events, ...(timer !== undefined && { timer }) });
    return;
  }
  events();
  scheduleTask(server, segment);
  notifyWatchers(segment);
}
