import type { WorkflowHandle } from '@temporalio/client';
import { isObject, textField } from '../core/json.js';
import { decodeChildEvent } from './decode-child-event.js';
import { read, readAll, readFailure, readFirst, type EventFailure } from './payloads.js';

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type RawEvent = NonNullable<History['events']>[number];
/** A recorded event, as far as a run's story needs it. `at`: Unix time in ms, by the server. */
export type HistoryEvent = { readonly id: number; readonly at: number } & (
  | {
      readonly type: 'started';
      readonly workflowType: string;
      readonly input: unknown;
      /** What the segment before has handed over; null in a run's first one. */
      readonly carried: unknown;
      /** Run ids of the segment before, and of the first one; empty where there is none before. */
      readonly before: string;
      readonly firstRunId: string;
    }
  | {
      readonly type: 'local';
      readonly activity: string;
      readonly result: unknown;
      /** Absent where it did not fail. */
      readonly failure?: EventFailure;
    }
  | {
      readonly type: 'scheduled';
      readonly activity: string;
      /** What the server lists a pending activity by. */
      readonly activityId: string;
      readonly input: unknown;
      readonly summary: string;
    }
  | { readonly type: 'completed'; readonly scheduled: number; readonly result: unknown }
  | { readonly type: 'failed'; readonly scheduled: number; readonly failure: EventFailure }
  | { readonly type: 'cancelled'; readonly scheduled: number }
  | {
      readonly type: 'update';
      readonly name: string;
      readonly updateId: string;
      readonly input: unknown;
    }
  /** Somebody sent something that the server recorded, whether a worker was there or not. */
  | { readonly type: 'signal'; readonly name: string; readonly input: unknown }
  /** What a turn has left in the memo. */
  | { readonly type: 'memo'; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly type: 'child-started'; readonly call: string; readonly child: string }
  /** The server has a run of this id already; the caller follows it, or starts it once more. */
  | { readonly type: 'child-existed'; readonly call: string }
  | {
      readonly type: 'child-ended';
      /** The id of the call that it was. */
      readonly call: string;
      readonly cancelled: boolean;
      /** Its outcome, however it ended; null where it left none. */
      readonly result: unknown;
      readonly message: string;
    }
  | { readonly type: 'cancel-requested' }
  | { readonly type: 'timer-fired' }
  | {
      readonly type: 'ended';
      readonly how: EndedHow;
      readonly result: unknown;
      readonly failure?: EventFailure;
      /** What is handed over to the next segment, where there is one. */
      readonly carried?: unknown;
    }
  /** The workflow begins to look at what has happened, and has done so. */
  | { readonly type: 'task-started' }
  | { readonly type: 'task-completed' }
  /** Something that the workflow did, and that changes nothing here. */
  | { readonly type: 'command' }
  | { readonly type: 'other' }
);

export type EndedHow =
  'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed-out' | 'continued';

type Told = HistoryEvent extends infer F
  ? F extends HistoryEvent
    ? Omit<F, 'id' | 'at'>
    : never
  : never;

/** Reads one event of a Temporal history. Payloads that cannot be read become null, never a throw. */
export function decodeEvent(event: RawEvent): HistoryEvent {
  const at = Number(event.eventTime?.seconds ?? 0) * 1_000 + (event.eventTime?.nanos ?? 0) / 1e6;
  return { id: Number(event.eventId ?? 0), at, ...(tell(event) ?? { type: 'other' }) };
}

function tell(event: RawEvent): Told | null {
  return activityFact(event) ?? decodeChildEvent(event) ?? runFact(event) ?? endFact(event);
}

function activityFact(event: RawEvent): Told | null {
  const {
    activityTaskScheduledEventAttributes: scheduled,
    activityTaskStartedEventAttributes: started,
    activityTaskCompletedEventAttributes: completed,
    activityTaskFailedEventAttributes: failed,
    activityTaskTimedOutEventAttributes: timedOut,
    activityTaskCanceledEventAttributes: cancelled,
  } = event;
  if (scheduled) {
    return {
      type: 'scheduled',
      activity: scheduled.activityType?.name ?? '',
      activityId: scheduled.activityId ?? '',
      input: readFirst(scheduled.input?.payloads),
      summary: summaryOf(event),
    };
  }
  if (started) return null;
  if (completed) {
    const result = readFirst(completed.result?.payloads);
    return { type: 'completed', scheduled: Number(completed.scheduledEventId), result };
  }
  const broken = failed ?? timedOut;
  if (broken) {
    return {
      type: 'failed',
      scheduled: Number(broken.scheduledEventId),
      failure: readFailure(broken.failure),
    };
  }
  return cancelled ? { type: 'cancelled', scheduled: Number(cancelled.scheduledEventId) } : null;
}

function summaryOf(event: RawEvent): string {
  const summary = read(event.userMetadata?.summary);
  return typeof summary === 'string' ? summary : '';
}

function runFact(event: RawEvent): Told | null {
  const started = event.workflowExecutionStartedEventAttributes;
  if (started) {
    const workflowType = started.workflowType?.name ?? '';
    const before = started.continuedExecutionRunId ?? '';
    const [input, carried] = started.input?.payloads ?? [];
    return {
      type: 'started',
      workflowType,
      input: read(input),
      carried: before === '' ? null : read(carried),
      before,
      firstRunId: started.firstExecutionRunId ?? '',
    };
  }
  if (isCommand(event)) return { type: 'command' };
  if (event.workflowTaskStartedEventAttributes) return { type: 'task-started' };
  if (event.workflowTaskCompletedEventAttributes) return { type: 'task-completed' };
  const marker = event.markerRecordedEventAttributes;
  if (marker?.markerName === 'core_local_activity') {
    const data = readFirst(marker.details?.['data']?.payloads);
    const activity = isObject(data) ? textField(data, 'activity_type') : '';
    const result = readFirst(marker.details?.['result']?.payloads);
    const failure = marker.failure && { failure: readFailure(marker.failure) };
    return { type: 'local', activity, result, ...failure };
  }
  const { input: update, meta } =
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest ?? {};
  if (update) {
    const { name, args } = update;
    const updateId = meta?.updateId ?? '';
    return { type: 'update', name: name ?? '', updateId, input: readFirst(args?.payloads) };
  }
  const signal = event.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const { signalName, input: sent } = signal;
    return { type: 'signal', name: signalName ?? '', input: readFirst(sent?.payloads) };
  }
  const memo = event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields;
  if (memo) return { type: 'memo', fields: readAll(memo) };
  if (event.workflowExecutionCancelRequestedEventAttributes) return { type: 'cancel-requested' };
  return event.timerFiredEventAttributes ? { type: 'timer-fired' } : null;
}

function isCommand(event: RawEvent): boolean {
  return Boolean(
    event.timerStartedEventAttributes ??
    event.timerCanceledEventAttributes ??
    event.activityTaskCancelRequestedEventAttributes ??
    event.upsertWorkflowSearchAttributesEventAttributes,
  );
}

function endFact(event: RawEvent): Told | null {
  const completed = event.workflowExecutionCompletedEventAttributes;
  if (completed) {
    return { type: 'ended', how: 'completed', result: readFirst(completed.result?.payloads) };
  }
  const failed = event.workflowExecutionFailedEventAttributes;
  if (failed) {
    const failure = readFailure(failed.failure);
    return { type: 'ended', how: 'failed', result: failure.details[0] ?? null, failure };
  }
  const cancelled = event.workflowExecutionCanceledEventAttributes;
  if (cancelled) {
    return { type: 'ended', how: 'cancelled', result: readFirst(cancelled.details?.payloads) };
  }
  if (event.workflowExecutionTerminatedEventAttributes) {
    return { type: 'ended', how: 'terminated', result: null };
  }
  if (event.workflowExecutionTimedOutEventAttributes) {
    return { type: 'ended', how: 'timed-out', result: null };
  }
  const continued = event.workflowExecutionContinuedAsNewEventAttributes;
  const [, carried] = continued?.input?.payloads ?? [];
  return continued
    ? {
        type: 'ended',
        how: 'continued',
        result: continued.newExecutionRunId,
        carried: read(carried),
      }
    : null;
}
