import { nameInCalledId } from '../core/calls/idempotency.js';
import { isOutcome, misfitMessage } from '../core/guards/recorded.js';
import { decodeRunEvent } from './decode-run-event.js';
import type { EventBody, HistoryEvent, RawEvent } from './history-event.js';
import { payloadValue } from '../temporal/server-answers.js';
import { decodeAll, decodeFailure, decodeFirst } from './payloads.js';

/**
 * Decodes one event of a Temporal history. A payload that the workflow could not read either becomes
 * null. Throws an `UnreadableError` for a payload that is still encoded.
 */
export function decodeEvent(raw: RawEvent): HistoryEvent {
  const at = eventTime(raw);
  return { id: Number(raw.eventId ?? 0), at, ...(decodeBody(raw) ?? { type: 'other' }) };
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
  { type: 'child-started' | 'child-ended' | 'child-existed' }
>;

/** Decodes an event of the run of a called agent; null for all other events. */
function decodeChildEvent(raw: RawEvent): EventBody<ChildEvent> | null {
  const initiated = raw.startChildWorkflowExecutionInitiatedEventAttributes;
  if (initiated) {
    const child = initiated.workflowId ?? '';
    return { type: 'child-started', call: nameInCalledId(child), child };
  }
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
