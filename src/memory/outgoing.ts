import { type Payload, defaultPayloadConverter } from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import { type Int64, type WorkflowCommand, workerRuntime } from '../temporal/sdk-internals.js';
import type { Machine } from './machines.js';
import { type AttributesOf, type EventKind } from './events.js';
import { type Update } from './segment.js';

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
export type LocalActivity = NonNullable<WorkflowCommand['scheduleLocalActivity']>;

type Failure = NonNullable<AttributesOf<'markerRecorded'>['failure']>;

/** Returns the marker that records the end of a local activity. `at`: Unix time in ms. */
export function localMarker(
  { seq, activityId, activityType }: LocalActivity,
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
  return marker('core_local_activity', subject, details, end.failure);
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
