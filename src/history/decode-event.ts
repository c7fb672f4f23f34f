import type { SegmentStart } from '../core/segments/start.js';
import type { WorkflowHandle } from '@temporalio/client';
import type { Failure } from '../core/facts.js';
import { isObject, textField } from '../core/json.js';
import type { SegmentFacts } from '../core/segments/carry.js';
import { decodeChildEvent } from './decode-child-event.js';
import { decodeEndEvent } from './decode-end-event.js';
import { decodeAll, decodeFailure, decodeFields, decodeFirst, decodePayload } from './payloads.js';

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
/** An event as Temporal's API gives it. */
export type RawEvent = NonNullable<History['events']>[number];
/** A decoded event, as far as projecting a run needs it. `at`: Unix time in ms, by the server. */
export type HistoryEvent = { readonly id: number; readonly at: number } & (
  | {
      readonly type: 'started';
      readonly workflowType: string;
      readonly input: unknown;
      /** The second argument: what the previous segment carried over; null if there is none. */
      readonly carried: unknown;
      /** Run id of the previous segment; empty in the first one. */
      readonly previousRunId: string;
      readonly firstRunId: string;
      /** Workflow id of the run above all callers of this one; its own id if no run calls it. */
      readonly root: string;
      readonly start: SegmentStart;
    }
  | {
      readonly type: 'local';
      readonly activity: string;
      /** Unix time in ms, by the worker. */
      readonly completedAt: number;
      readonly result: unknown;
      /** Absent if it did not fail. */
      readonly failure?: Failure;
    }
  | {
      readonly type: 'scheduled';
      readonly activity: string;
      /** The id under which the server lists the activity while it is pending. */
      readonly activityId: string;
      readonly input: unknown;
      readonly summary: string;
    }
  | { readonly type: 'completed'; readonly scheduled: number; readonly result: unknown }
  | { readonly type: 'failed'; readonly scheduled: number; readonly failure: Failure }
  | {
      readonly type: 'cancelled';
      readonly scheduled: number;
      readonly details: readonly unknown[];
    }
  /** The workflow asked for an activity to be canceled. It may not wait for the activity. */
  | { readonly type: 'cancel-asked'; readonly scheduled: number }
  | {
      readonly type: 'update';
      readonly name: string;
      readonly updateId: string;
      readonly input: unknown;
    }
  /** The server recorded a signal. A worker need not have been there. */
  | { readonly type: 'signal'; readonly name: string; readonly input: unknown }
  /** The workflow changed its memo, as it does at the end of a turn. */
  | { readonly type: 'memo'; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly type: 'child-started'; readonly call: string; readonly child: string }
  /** The server has a run with this id already. The caller follows it, or starts it again. */
  | { readonly type: 'child-existed'; readonly call: string }
  | {
      readonly type: 'child-ended';
      /** The id of the call that started the child. */
      readonly call: string;
      readonly cancelled: boolean;
      /** Its outcome, however it ended; null if it left none. */
      readonly result: unknown;
      readonly message: string;
    }
  | { readonly type: 'cancel-requested' }
  | { readonly type: 'timer-fired' }
  | {
      readonly type: 'ended';
      readonly how: EndedHow;
      readonly result: unknown;
      readonly failure?: Failure;
      /** What is carried over to the next segment, if there is one. */
      readonly carried?: unknown;
    }
  /**
   * A worker starts and completes a workflow task, in which the workflow processes new events. The
   * server shows the first two before the history has them. If the task fails, it leaves no such
   * events, and other events get their ids; only a later event confirms them.
   */
  | { readonly type: 'task-scheduled' }
  | { readonly type: 'task-started'; readonly segment: SegmentFacts }
  | { readonly type: 'task-completed' }
  /** A command of the workflow that does not change the projection. */
  | { readonly type: 'command' }
  | { readonly type: 'other' }
);

export type EndedHow =
  'completed' | 'failed' | 'cancelled' | 'terminated' | 'timed-out' | 'continued';

/** A history event without the fields that all events share. */
export type EventBody<E = HistoryEvent> = E extends HistoryEvent ? Omit<E, 'id' | 'at'> : never;

/** Returns whether an event is permanent, even at the end of a history: no other event can take its id. */
export function isPermanent({ type }: HistoryEvent): boolean {
  return type !== 'task-scheduled' && type !== 'task-started';
}

/** Decodes one event of a Temporal history. Never throws: a payload that cannot be read becomes null. */
export function decodeEvent(raw: RawEvent): HistoryEvent {
  const at = Number(raw.eventTime?.seconds ?? 0) * 1_000 + (raw.eventTime?.nanos ?? 0) / 1e6;
  return { id: Number(raw.eventId ?? 0), at, ...(decodeBody(raw) ?? { type: 'other' }) };
}

function decodeBody(raw: RawEvent): EventBody | null {
  return (
    decodeActivityEvent(raw) ?? decodeChildEvent(raw) ?? decodeRunEvent(raw) ?? decodeEndEvent(raw)
  );
}

function decodeActivityEvent(raw: RawEvent): EventBody | null {
  const {
    activityTaskScheduledEventAttributes: scheduled,
    activityTaskStartedEventAttributes: started,
    activityTaskCompletedEventAttributes: completed,
    activityTaskFailedEventAttributes: failed,
    activityTaskTimedOutEventAttributes: timedOut,
    activityTaskCanceledEventAttributes: cancelled,
    activityTaskCancelRequestedEventAttributes: asked,
  } = raw;
  if (scheduled) {
    return {
      type: 'scheduled',
      activity: scheduled.activityType?.name ?? '',
      activityId: scheduled.activityId ?? '',
      input: decodeFirst(scheduled.input?.payloads),
      summary: decodeSummary(raw),
    };
  }
  if (started) return null;
  if (completed) {
    const result = decodeFirst(completed.result?.payloads);
    return { type: 'completed', scheduled: Number(completed.scheduledEventId), result };
  }
  const broken = failed ?? timedOut;
  if (broken) {
    return {
      type: 'failed',
      scheduled: Number(broken.scheduledEventId),
      failure: decodeFailure(broken.failure),
    };
  }
  if (cancelled) {
    const details = decodeAll(cancelled.details?.payloads);
    return { type: 'cancelled', scheduled: Number(cancelled.scheduledEventId), details };
  }
  return asked ? { type: 'cancel-asked', scheduled: Number(asked.scheduledEventId) } : null;
}

function decodeSummary(raw: RawEvent): string {
  const summary = decodePayload(raw.userMetadata?.summary);
  return typeof summary === 'string' ? summary : '';
}

function decodeRunEvent(raw: RawEvent): EventBody | null {
  const started = raw.workflowExecutionStartedEventAttributes;
  if (started) {
    const workflowType = started.workflowType?.name ?? '';
    const previousRunId = started.continuedExecutionRunId ?? '';
    const [input, carried] = started.input?.payloads ?? [];
    return {
      type: 'started',
      workflowType,
      input: decodePayload(input),
      carried: carried ? decodePayload(carried) : null,
      previousRunId,
      firstRunId: started.firstExecutionRunId ?? '',
      root: started.rootWorkflowExecution?.workflowId ?? started.workflowId ?? '',
      start: {
        cronSchedule: started.cronSchedule ?? '',
        hasRetryPolicy: Boolean(started.retryPolicy),
        hasParent: Boolean(started.parentWorkflowExecution),
        isContinued: previousRunId !== '',
      },
    };
  }
  if (isCommand(raw)) return { type: 'command' };
  if (raw.workflowTaskScheduledEventAttributes) return { type: 'task-scheduled' };
  const task = raw.workflowTaskStartedEventAttributes;
  if (task) return { type: 'task-started', segment: segmentFacts(task, Number(raw.eventId)) };
  if (raw.workflowTaskCompletedEventAttributes) return { type: 'task-completed' };
  const marker = raw.markerRecordedEventAttributes;
  if (marker?.markerName === 'core_local_activity') {
    const data = decodeFirst(marker.details?.['data']?.payloads);
    const activity = isObject(data) ? textField(data, 'activity_type') : '';
    const completedAt = isObject(data) ? protoMs(data['complete_time']) : 0;
    const result = decodeFirst(marker.details?.['result']?.payloads);
    const failure = marker.failure && { failure: decodeFailure(marker.failure) };
    return { type: 'local', activity, completedAt, result, ...failure };
  }
  const { input: update, meta } =
    raw.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest ?? {};
  if (update) {
    const { name, args } = update;
    const updateId = meta?.updateId ?? '';
    return { type: 'update', name: name ?? '', updateId, input: decodeFirst(args?.payloads) };
  }
  const signal = raw.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const { signalName, input: sent } = signal;
    return { type: 'signal', name: signalName ?? '', input: decodeFirst(sent?.payloads) };
  }
  const memo = raw.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields;
  if (memo) return { type: 'memo', fields: decodeFields(memo) };
  if (raw.workflowExecutionCancelRequestedEventAttributes) return { type: 'cancel-requested' };
  return raw.timerFiredEventAttributes ? { type: 'timer-fired' } : null;
}

type TaskStarted = NonNullable<RawEvent['workflowTaskStartedEventAttributes']>;

/** Returns what the workflow knows about its history in this task. */
function segmentFacts(task: TaskStarted, id: number): SegmentFacts {
  return {
    historyBytes: Number(task.historySizeBytes ?? 0),
    historyEvents: id,
    suggested: Boolean(task.suggestContinueAsNew || task.targetWorkerDeploymentVersionChanged),
  };
}

/** Returns a time of the SDK's core in Unix time in ms; 0 if it cannot be read. */
function protoMs(time: unknown): number {
  if (!isObject(time)) return 0;
  const ms = Number(time['seconds']) * 1_000 + Math.floor(Number(time['nanos']) / 1e6);
  return Number.isFinite(ms) ? ms : 0;
}

function isCommand(raw: RawEvent): boolean {
  return Boolean(
    raw.timerStartedEventAttributes ??
    raw.timerCanceledEventAttributes ??
    raw.upsertWorkflowSearchAttributesEventAttributes,
  );
}
