import { isObject, textField } from '../core/json.js';
import type { SegmentFacts } from '../core/segments/carry.js';
import type { EventBody, HistoryEvent, RawEvent } from './history-event.js';
import { payloadValue } from '../temporal/server-answers.js';
import { decodeFailure, decodeFields, decodeFirst } from './payloads.js';

/**
 * Decodes an event of the run itself: its start, its end, or an incoming message; null for all
 * other events.
 */
export function decodeRunEvent(raw: RawEvent): EventBody | null {
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
  if (raw.workflowExecutionCancelRequestedEventAttributes) return { type: 'cancel-requested' };
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
    const failure = decodeFailure(failed.failure);
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
