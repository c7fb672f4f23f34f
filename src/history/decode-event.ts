import { UnreadableError } from '../core/errors.js';
import { isOutcome, misfitMessage } from '../core/guards/recorded.js';
import type { SegmentFacts } from '../core/run/carry.js';
import { visible } from '../core/state/summaries.js';
import { isObject, textField } from '../core/text/json.js';
import { nameInCalledId } from '../core/transcript/call-result.js';
import { payloadValue } from '../temporal/server-answers.js';
import {
  type EventBody,
  type HistoryEvent,
  type RawEvent,
  decodeAll,
  decodeEndFailure,
  decodeFailure,
  decodeFields,
  decodeFirst,
} from './history-event.js';

/**
 * Decodes an event of the run itself: its start, its end, or an incoming message; null for all
 * other events.
 */
function decodeRunEvent(raw: RawEvent): EventBody | null {
  const started = raw.workflowExecutionStartedEventAttributes;
  if (started) {
    const workflowType = started.workflowType?.name ?? '';
    const previousRunId = started.continuedExecutionRunId ?? '';
    const [input, carried] = started.input?.payloads ?? [];
    return {
      type: 'started',
      workflowType,
      input: payloadValue(input),
      carried: carried ? payloadValue(carried) : null,
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
  if (marker?.markerName === 'core_patch') {
    const patch = decodeFirst(marker.details?.['patch-data']?.payloads);
    return { type: 'patched', patch: isObject(patch) ? textField(patch, 'id') : '' };
  }
  if (marker?.markerName === 'core_local_activity') {
    const data = decodeFirst(marker.details?.['data']?.payloads);
    const activity = isObject(data) ? textField(data, 'activity_type') : '';
    const completedAt = isObject(data) ? protoMs(data['complete_time']) : 0;
    const result = decodeFirst(marker.details?.['result']?.payloads);
    const failure = marker.failure && { failure: decodeFailure(marker.failure) };
    return { type: 'local', activity, completedAt, result, ...failure };
  }
  const update = decodeUpdate(raw);
  if (update) return update;
  const signal = raw.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const { signalName, input: sent } = signal;
    return { type: 'signal', name: signalName ?? '', input: decodeFirst(sent?.payloads) };
  }
  const memo = raw.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields;
  if (memo) return { type: 'memo', fields: decodeFields(memo) };
  const cancel = raw.workflowExecutionCancelRequestedEventAttributes;
  if (cancel) return { type: 'cancel-requested', ...cancelerOf(cancel) };
  return raw.timerFiredEventAttributes ? { type: 'timer-fired' } : decodeEndEvent(raw);
}

function decodeUpdate({
  workflowExecutionUpdateAcceptedEventAttributes: accepted,
  workflowExecutionUpdateAdmittedEventAttributes: admitted,
}: RawEvent): EventBody | null {
  const { input, meta } = accepted?.acceptedRequest ?? admitted?.request ?? {};
  const request = input
    ? { name: input.name ?? '', input: decodeFirst(input.args?.payloads) }
    : null;
  const updateId = meta?.updateId ?? accepted?.protocolInstanceId ?? '';
  if (accepted) return { type: 'update', updateId, request };
  return request && { type: 'update-admitted', updateId, request };
}

type TaskStarted = NonNullable<RawEvent['workflowTaskStartedEventAttributes']>;

/** Returns the workflow's data about its history in this task. */
function segmentFacts(task: TaskStarted, id: number): SegmentFacts {
  return {
    historyBytes: Number(task.historySizeBytes ?? 0),
    historyEvents: id,
    suggested: Boolean(task.suggestContinueAsNew || task.targetWorkerDeploymentVersionChanged),
    moved: Boolean(task.targetWorkerDeploymentVersionChanged),
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

type EndEvent = Extract<HistoryEvent, { type: 'ended' }>;

/** Decodes the last event of a segment; null for all other events. */
function decodeEndEvent(raw: RawEvent): EventBody<EndEvent> | null {
  const completed = raw.workflowExecutionCompletedEventAttributes;
  if (completed) {
    return { type: 'ended', how: 'completed', result: decodeFirst(completed.result?.payloads) };
  }
  const failed = raw.workflowExecutionFailedEventAttributes;
  if (failed) {
    const failure = decodeEndFailure(failed.failure);
    return { type: 'ended', how: 'failed', result: failure.details[0] ?? null, failure };
  }
  const cancelled = raw.workflowExecutionCanceledEventAttributes;
  if (cancelled) {
    return { type: 'ended', how: 'cancelled', result: decodeFirst(cancelled.details?.payloads) };
  }
  if (raw.workflowExecutionTerminatedEventAttributes) {
    return { type: 'ended', how: 'terminated', result: null };
  }
  if (raw.workflowExecutionTimedOutEventAttributes) {
    return { type: 'ended', how: 'timed_out', result: null };
  }
  const continued = raw.workflowExecutionContinuedAsNewEventAttributes;
  const [, carried] = continued?.input?.payloads ?? [];
  return continued
    ? {
        type: 'ended',
        how: 'continued',
        result: continued.newExecutionRunId,
        carried: payloadValue(carried),
      }
    : null;
}

/**
 * Decodes one event of a Temporal history. A payload that the workflow could not read either becomes
 * null. Throws an `UnreadableError` for a payload that is still encoded.
 */
export function decodeEvent(raw: RawEvent): HistoryEvent {
  const at = eventTime(raw);
  return { id: Number(raw.eventId ?? 0), at, ...(decodeBody(raw) ?? { type: 'other' }) };
}

/**
 * Decodes events of a run's history. Throws an `UnreadableError` that names the run if a payload is
 * still encoded: a run that was started in clear text may be encrypted later.
 */
export function decodeEvents(
  id: string,
  events: readonly RawEvent[] | null | undefined,
): readonly HistoryEvent[] {
  try {
    return (events ?? []).map(decodeEvent);
  } catch (error) {
    if (!UnreadableError.isInstance(error)) throw error;
    throw new UnreadableError(
      `the history of run "${visible(id)}" cannot be read: ${error.message}`,
      { cause: error },
    );
  }
}

/** Returns when the server recorded an event: Unix time in ms. */
export function eventTime({ eventTime: time }: RawEvent): number {
  return Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6;
}

function decodeBody(raw: RawEvent): EventBody | null {
  return decodeActivityEvent(raw) ?? decodeChildEvent(raw) ?? decodeRunEvent(raw);
}

function decodeActivityEvent(raw: RawEvent): EventBody | null {
  const {
    activityTaskScheduledEventAttributes: scheduled,
    activityTaskStartedEventAttributes: started,
    activityTaskCompletedEventAttributes: completed,
    activityTaskFailedEventAttributes: failed,
    activityTaskTimedOutEventAttributes: timedOut,
    activityTaskCanceledEventAttributes: cancelled,
    activityTaskCancelRequestedEventAttributes: cancelRequested,
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
  if (started) {
    const { attempt, lastFailure } = started;
    return {
      type: 'attempted',
      scheduled: Number(started.scheduledEventId),
      attempt: attempt ?? 1,
      ...(lastFailure && { failure: decodeFailure(lastFailure) }),
    };
  }
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
  return cancelRequested
    ? { type: 'activity-cancel-requested', scheduled: Number(cancelRequested.scheduledEventId) }
    : null;
}

function decodeSummary(raw: RawEvent): string {
  const summary = payloadValue(raw.userMetadata?.summary);
  return typeof summary === 'string' ? summary : '';
}

type ChildEvent = Extract<
  HistoryEvent,
  { type: 'child-started' | 'child-began' | 'child-ended' | 'child-existed' }
>;

/** Decodes an event of the run of a called agent; null for all other events. */
function decodeChildEvent(raw: RawEvent): EventBody<ChildEvent> | null {
  const initiated = raw.startChildWorkflowExecutionInitiatedEventAttributes;
  if (initiated) {
    const child = initiated.workflowId ?? '';
    return { type: 'child-started', call: nameInCalledId(child), child };
  }
  const began = raw.childWorkflowExecutionStartedEventAttributes?.workflowExecution;
  if (began)
    return { type: 'child-began', child: began.workflowId ?? '', runId: began.runId ?? '' };
  const {
    childWorkflowExecutionCompletedEventAttributes: completed,
    childWorkflowExecutionFailedEventAttributes: failed,
    childWorkflowExecutionCanceledEventAttributes: cancelled,
    childWorkflowExecutionTerminatedEventAttributes: terminated,
    childWorkflowExecutionTimedOutEventAttributes: timedOut,
    startChildWorkflowExecutionFailedEventAttributes: notStarted,
  } = raw;
  if (notStarted)
    return { type: 'child-existed', call: nameInCalledId(notStarted.workflowId ?? '') };
  const ended = completed ?? failed ?? cancelled ?? terminated ?? timedOut;
  const child = ended?.workflowExecution?.workflowId;
  if (child === undefined || child === null) return null;
  const end = {
    type: 'child-ended',
    call: nameInCalledId(child),
    cancelled: Boolean(cancelled),
  } as const;
  if (completed) {
    const result = decodeFirst(completed.result?.payloads);
    return { ...end, result, message: isOutcome(result) ? '' : misfitMessage('agent', result) };
  }
  if (cancelled) return { ...end, result: decodeFirst(cancelled.details?.payloads), message: '' };
  if (failed) {
    const { details, message } = decodeFailure(failed.failure);
    return { ...end, result: details[0] ?? null, message };
  }
  return { ...end, result: null, message: endMessage({ terminated, timedOut }) };
}

/** Returns the SDK's message, which the workflow also reads. */
function endMessage(event: { terminated: unknown; timedOut: unknown }): string {
  if (event.terminated) return 'Terminated';
  return event.timedOut ? 'Workflow execution timed out' : '';
}

/** Returns the reason of a cancel, which the history keeps: it names who requests it. */
export function cancelReason(by: string): string {
  return `by ${by}`;
}

/** The identity of the server, which cancels the runs that an ended one has called. */
const SERVER = 'history-service';

/** Returns who has requested a cancel, as far as the event says it. */
function cancelerOf({
  cause,
  externalWorkflowExecution: run,
  identity,
}: NonNullable<RawEvent['workflowExecutionCancelRequestedEventAttributes']>): {
  readonly by?: string;
  readonly from?: string;
} {
  const by = /^by (\S.{0,199})$/.exec(cause ?? '')?.[1];
  const client = identity && identity !== SERVER ? `client ${identity}` : '';
  const from = run?.workflowId ? `run ${run.workflowId}` : client;
  return { ...(by !== undefined && { by }), ...(from !== '' && { from }) };
}
