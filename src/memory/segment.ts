import { type Payload, defaultPayloadConverter } from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import {
  type Int64,
  type Workflow,
  msToTs,
  workerRuntime,
  type WorkflowCommand,
} from '../temporal/sdk-internals.js';
import { type AttributesOf, type EventKind, typeName } from './events.js';
import type { Machines, Machine } from './jobs.js';

/** The numbers of Temporal's `WorkflowExecutionStatus`. */
export const STATUS = {
  running: 1,
  completed: 2,
  failed: 3,
  canceled: 4,
  terminated: 5,
  continued: 6,
} as const;

/** Why a workflow task does not see an event yet: another task is under way. */
interface BufferedEvent {
  /** The id of the `timerStarted` event, for a timer that has fired. */
  readonly timer?: number;
  readonly append: () => void;
}

/** An update that a client has sent. */
export interface Update {
  readonly id: string;
  readonly request: UpdateRequest;
  /** The id of the `workflowExecutionUpdateAccepted` event. */
  acceptedEvent: number | null;
  outcome: UpdateOutcome | null;
  /** Whether a workflow task has delivered it. */
  isDelivered: boolean;
  readonly waiting: Set<() => void>;
}

type AcceptedAttributes = AttributesOf<'workflowExecutionUpdateAccepted'>;
type UpdateRequest = NonNullable<AcceptedAttributes['acceptedRequest']>;
type UpdateOutcome = NonNullable<AttributesOf<'workflowExecutionUpdateCompleted'>['outcome']>;

/** A query that waits for its answer. */
export interface Query {
  readonly type: string;
  readonly args: readonly Payload[];
  readonly answer: (payload: Payload | null | undefined) => void;
  readonly refuse: (message: string) => void;
}

/** A workflow in the SDK's runtime. A worker that dies loses it, and the next one replays it. */
export interface CachedWorkflow {
  readonly workflow: Workflow;
  readonly machines: Machines;
  readonly randomnessSeed: Int64;
  readonly patches: Set<string>;
  /** The id of the newest event that the workflow has received. */
  seen: number;
}

/** One Temporal run: its history, and what a server knows beside it. */
export interface Segment {
  readonly workflowId: string;
  readonly runId: string;
  readonly firstRunId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly startedAt: number;
  closedAt: number | null;
  status: number;
  readonly events: RawEvent[];
  /** The approximate size of the history. */
  bytes: number;
  readonly memo: Map<string, Payload>;
  readonly attributes: Map<string, Payload>;
  readonly caller: { readonly segment: Segment; readonly initiated: number } | null;
  /** The event id of the scheduled workflow task; null if there is none. */
  scheduled: number | null;
  inTask: boolean;
  isDraining: boolean;
  buffered: BufferedEvent[];
  cached: CachedWorkflow | null;
  readonly updates: Map<string, Update>;
  queries: Query[];
  /** Cancels the timers of the workflow, by the id of the event that started them. */
  readonly timers: Map<number, () => void>;
  /** Called workflows, by the id of the event that initiated them. */
  readonly children: Map<number, Segment>;
  /** For a called workflow: the id of the event of its caller that recorded its start. */
  startedEvent: number;
  /** Called whenever the history grows, and at the end. */
  readonly watchers: Set<() => void>;
}

/** The size of an event without its payloads, about as a server counts it. */
const EVENT_BYTES = 120;

/** Appends an event, and returns its id. */
export function append<K extends EventKind>(
  segment: Segment,
  event: {
    readonly kind: K;
    readonly attributes: AttributesOf<K>;
    readonly at: number;
    readonly userMetadata?: RawEvent['userMetadata'];
  },
): number {
  const { kind, attributes, at, userMetadata } = event;
  const { toInt64, eventTypes } = workerRuntime();
  const id = segment.events.length + 1;
  segment.events.push({
    eventId: toInt64(id),
    eventTime: msToTs(at),
    eventType: eventTypes[typeName(kind)] ?? 0,
    [`${kind}EventAttributes`]: attributes,
    ...(userMetadata && { userMetadata }),
  });
  segment.bytes += EVENT_BYTES + payloadBytes(attributes);
  return id;
}

/** Returns the bytes of all payloads in a message. */
function payloadBytes(value: unknown): number {
  if (value instanceof Uint8Array) return value.length;
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + payloadBytes(one), 0);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, one) => sum + payloadBytes(one), 0);
}

/** Whether the run has ended. */
export function isClosed({ status }: Segment): boolean {
  return status !== STATUS.running;
}

/** Tells everybody who follows the history that it has grown. */
export function notifyWatchers({ watchers }: Segment): void {
  for (const watcher of watchers) watcher();
}

/** Returns a number as messages have it. */
export function toId(id: number): Int64 {
  return workerRuntime().toInt64(id);
}

/** An event that a command of the workflow makes in its task. */
export interface Outgoing<K extends EventKind = EventKind> {
  readonly kind: K;
  /** What a replay must repeat. */
  readonly subject: string;
  readonly attributes: (task: TaskEnd) => AttributesOf<K>;
  readonly userMetadata?: RawEvent['userMetadata'];
  readonly machine?: Machine;
  readonly update?: Update;
}

/** The end of the task in which a command is recorded. */
export interface TaskEnd {
  /** The id of the `workflowTaskCompleted` event. */
  readonly completed: number;
  readonly newRunId: string;
}

/** The events that end a segment. */
export const ENDS: readonly EventKind[] = [
  'workflowExecutionCompleted',
  'workflowExecutionFailed',
  'workflowExecutionCanceled',
  'workflowExecutionContinuedAsNew',
];

/** A local activity that the workflow has started; it runs within the task. */
export interface LocalActivity {
  readonly scheduled: NonNullable<WorkflowCommand['scheduleLocalActivity']>;
  readonly userMetadata: RawEvent['userMetadata'];
}

type Failure = NonNullable<AttributesOf<'markerRecorded'>['failure']>;

/** Returns the marker that records the end of a local activity. `at`: Unix time in ms. */
export function localMarker(
  { scheduled: { seq, activityId, activityType }, userMetadata }: LocalActivity,
  end: {
    readonly at: number;
    readonly result?: Payload | null;
    readonly failure?: Failure | null;
  },
): Outgoing<'markerRecorded'> {
  const time = { seconds: Math.floor(end.at / 1_000), nanos: (end.at % 1_000) * 1e6 };
  const data = toJson({
    seq,
    attempt: 1,
    activity_id: activityId,
    activity_type: activityType,
    complete_time: time,
    backoff: null,
    original_schedule_time: time,
  });
  const subject = `local activity ${seq} ${activityType}`;
  const details = { data, ...(end.result && { result: end.result }) };
  const made = marker('core_local_activity', subject, details, end.failure);
  return { ...made, ...(userMetadata && { userMetadata }) };
}

/** Returns the event of a marker. */
export function marker(
  markerName: string,
  subject: string,
  details: Readonly<Record<string, Payload>>,
  failure: Failure | null = null,
): Outgoing<'markerRecorded'> {
  const entries = Object.entries(details).map(([name, payload]) => [name, { payloads: [payload] }]);
  return {
    kind: 'markerRecorded',
    subject,
    attributes: ({ completed }) => ({
      markerName,
      details: Object.fromEntries(entries),
      ...(failure && { failure }),
      workflowTaskCompletedEventId: toId(completed),
    }),
  };
}

/** Returns a value as JSON in a payload. */
export function toJson(value: unknown): Payload {
  return defaultPayloadConverter.toPayload(value) ?? {};
}
