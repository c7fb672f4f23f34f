import type { Info } from '@temporalio/activity';
import {
  ActivityCancellationDetails,
  type Payload,
  decompileRetryPolicy,
  defaultPayloadConverter,
} from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import { type ActivityResult, optionalTsToMs } from '../temporal/sdk-internals.js';
import {
  type Attempt,
  type AttemptHost,
  createAttempt,
  loseAttempt,
  runAttempt,
} from './attempt.js';
import { HOPELESS_ATTEMPTS, type Probes, isHopelessProbe, noteEnd } from './probes.js';
import { toId, type Segment, append } from './segment.js';
import { type AttributesOf, NAMESPACE, idOf } from './events.js';

type Scheduled = AttributesOf<'activityTaskScheduled'>;
type Failure = NonNullable<AttributesOf<'activityTaskFailed'>['failure']>;

/** Executes the activities of all runs, as a server and a worker do together. */
export interface ActivityHost extends AttemptHost {
  /** Appends events that the workflow learns of in its next task. */
  readonly report: (segment: Segment, events: () => void) => void;
  readonly pending: Map<Segment, Map<number, PendingActivity>>;
  /** Ends each local activity under way, when its worker dies. */
  readonly locals: Map<Attempt, () => void>;
  readonly probes: Probes;
}

/** Whether an activity waits for something outside the run. */
export function isHopeless({ attempt, isParked }: PendingActivity): boolean {
  return isParked || attempt > HOPELESS_ATTEMPTS;
}

/** An activity that is scheduled and has not ended. */
export interface PendingActivity {
  readonly segment: Segment;
  readonly scheduledEvent: number;
  readonly attributes: Scheduled;
  readonly scheduledAt: number;
  attempt: number;
  /** Whether it is a probe that is not made, because too many before it have failed. */
  readonly isParked: boolean;
  /** The id of the event that requested its cancellation. */
  cancelRequested: number | null;
  lastFailure: Failure | null;
  /** When the latest attempt started, and when it could start: Unix times in ms. */
  startedAt: number;
  dueAt: number;
  lastBeat: number;
  details: readonly Payload[];
  current: Attempt | null;
  /** Cancels the timers of the waiting or running attempt. */
  timers: (() => void)[];
}

/** Numbers of Temporal's `RetryState` and `TimeoutType`. */
const RETRY = { inProgress: 1, nonRetryable: 2, timeout: 3, maximumAttempts: 4 } as const;
export const TIMEOUT = { startToClose: 1, scheduleToClose: 3, heartbeat: 4 } as const;
const TIMEOUT_NAMES: Readonly<Record<number, string>> = {
  [TIMEOUT.startToClose]: 'StartToClose',
  [TIMEOUT.scheduleToClose]: 'ScheduleToClose',
  [TIMEOUT.heartbeat]: 'Heartbeat',
};

/** Schedules the activity of an `activityTaskScheduled` event. */
export function scheduleActivity(host: ActivityHost, segment: Segment, event: RawEvent): void {
  const attributes = event.activityTaskScheduledEventAttributes;
  if (!attributes) return;
  const now = host.clock.now();
  const isParked = isHopelessProbe(host.probes, segment, attributes);
  const activity: PendingActivity = {
    segment,
    scheduledEvent: idOf(event),
    attributes,
    scheduledAt: now,
    attempt: 0,
    isParked,
    cancelRequested: null,
    lastFailure: null,
    startedAt: now,
    dueAt: now,
    lastBeat: now,
    details: [],
    current: null,
    timers: [],
  };
  const ofSegment = host.pending.get(segment) ?? new Map<number, PendingActivity>();
  host.pending.set(segment, ofSegment.set(activity.scheduledEvent, activity));
  if (!isParked) startAttempt(host, activity);
}

/** Requests the cancellation of an activity. One that waits for its next attempt ends at once. */
export function cancelActivity(
  host: ActivityHost,
  segment: Segment,
  { scheduled, requested }: { readonly scheduled: number; readonly requested: number },
): void {
  const activity = host.pending.get(segment)?.get(scheduled);
  if (activity === undefined || activity.cancelRequested !== null) return;
  activity.cancelRequested = requested;
  const { current } = activity;
  if (current === null) endActivity(host, activity, { type: 'cancelled', details: null });
  else if (!current.isLost) {
    const details = ActivityCancellationDetails.fromProto({ isCancelled: true });
    current.execution.cancel('CANCELLED', details);
  }
}

/** Interrupts the activities of a run that has ended. */
export function abandonActivities(host: ActivityHost, segment: Segment): void {
  for (const activity of host.pending.get(segment)?.values() ?? []) {
    clearTimers(activity);
    abandonAttempt(activity);
  }
  host.pending.delete(segment);
}

function abandonAttempt({ current }: PendingActivity): void {
  if (current === null || current.isOver || current.isLost) return;
  current.isOver = true;
  const details = ActivityCancellationDetails.fromProto({ isNotFound: true });
  current.execution.cancel('NOT_FOUND', details);
}

/** Loses all attempts, as the death of their worker does: the server notices it by the heartbeat. */
export function loseAttempts(host: ActivityHost): void {
  const now = host.clock.now();
  for (const [attempt, end] of host.locals) {
    loseAttempt(host, attempt);
    end();
  }
  for (const activity of [...host.pending.values()].flatMap((all) => [...all.values()])) {
    const { current, lastBeat, attributes } = activity;
    if (current === null || current.isOver || current.isLost) continue;
    loseAttempt(host, current);
    const heartbeatMs = optionalTsToMs(attributes.heartbeatTimeout) ?? 0;
    if (heartbeatMs === 0) continue;
    setTimeoutOf(host, activity, {
      at: Math.max(now, lastBeat + heartbeatMs),
      type: TIMEOUT.heartbeat,
    });
  }
}

/** Records a heartbeat. Returns whether the activity is to be canceled; null if the attempt is over. */
export function recordHeartbeat(
  host: ActivityHost,
  token: string,
  details: readonly Payload[],
): boolean | null {
  const attempt = host.attempts.get(token);
  if (attempt === undefined || attempt.isOver || attempt.isLost) return null;
  attempt.beat(details);
  return attempt.execution.abortController.signal.aborted;
}

function clearTimers(activity: PendingActivity): void {
  for (const cancel of activity.timers.splice(0)) cancel();
}

function setTimeoutOf(
  host: ActivityHost,
  activity: PendingActivity,
  { at, type }: { readonly at: number; readonly type: number },
): void {
  const { current } = activity;
  if (current === null) return;
  const kind = current.isLost ? 'lost' : 'timeout';
  activity.timers.push(
    host.clock.set({ at, kind }, () => timeOut(host, activity, { attempt: current, type })),
  );
}

function startAttempt(host: ActivityHost, activity: PendingActivity): void {
  const { attributes, scheduledAt } = activity;
  clearTimers(activity);
  activity.attempt += 1;
  const now = host.clock.now();
  activity.startedAt = now;
  activity.lastBeat = now;
  const attempt = createAttempt(host, infoOf(host, activity), (details) => {
    activity.lastBeat = host.clock.now();
    activity.details = details;
  });
  activity.current = attempt;
  const startToClose = optionalTsToMs(attributes.startToCloseTimeout) ?? 0;
  const scheduleToClose = optionalTsToMs(attributes.scheduleToCloseTimeout) ?? 0;
  if (startToClose > 0) {
    setTimeoutOf(host, activity, { at: now + startToClose, type: TIMEOUT.startToClose });
  }
  if (scheduleToClose > 0) {
    setTimeoutOf(host, activity, {
      at: scheduledAt + scheduleToClose,
      type: TIMEOUT.scheduleToClose,
    });
  }
  void runToEnd(host, activity, attempt);
}

async function runToEnd(
  host: ActivityHost,
  activity: PendingActivity,
  attempt: Attempt,
): Promise<void> {
  const result = await runAttempt(host, attempt, activity.attributes);
  if (!attempt.isOver && !attempt.isLost) finish(host, activity, result);
}

/** Times in the context of an activity are real, since its code reads the real clock. */
function infoOf(
  { clock }: ActivityHost,
  { segment, attributes, scheduledAt, attempt, details }: PendingActivity,
): Omit<Info, 'taskToken' | 'base64TaskToken'> {
  const heartbeatTimeoutMs = optionalTsToMs(attributes.heartbeatTimeout) ?? 0;
  const retryPolicy = decompileRetryPolicy(attributes.retryPolicy);
  const [detail] = details;
  const now = Date.now();
  return {
    ...placeOf(segment),
    activityId: attributes.activityId ?? '',
    activityType: attributes.activityType?.name ?? '',
    attempt,
    isLocal: false,
    heartbeatDetails:
      detail === undefined ? undefined : defaultPayloadConverter.fromPayload(detail),
    ...(heartbeatTimeoutMs > 0 && { heartbeatTimeoutMs }),
    scheduledTimestampMs: now - (clock.now() - scheduledAt),
    currentAttemptScheduledTimestampMs: now,
    startToCloseTimeoutMs: optionalTsToMs(attributes.startToCloseTimeout) ?? 0,
    scheduleToCloseTimeoutMs: optionalTsToMs(attributes.scheduleToCloseTimeout) ?? 0,
    ...(retryPolicy && { retryPolicy }),
  };
}

/** Where an activity runs, as its context says. */
export function placeOf({ workflowId, runId, workflowType, taskQueue }: Segment) {
  return {
    activityNamespace: NAMESPACE,
    namespace: NAMESPACE,
    workflowNamespace: NAMESPACE,
    workflowExecution: { workflowId, runId },
    workflowType,
    taskQueue,
    inWorkflow: true,
  };
}

function finish(host: ActivityHost, activity: PendingActivity, result: ActivityResult): void {
  const { completed, failed, cancelled } = result;
  if (completed) endActivity(host, activity, { type: 'completed', result: completed.result });
  else if (cancelled && activity.cancelRequested !== null) {
    const details = cancelled.failure?.canceledFailureInfo?.details ?? null;
    endActivity(host, activity, { type: 'cancelled', details });
  } else {
    const failure = failed?.failure ?? cancelled?.failure ?? { message: 'no result' };
    retryOrEnd(host, activity, failure, (retryState) => ({ type: 'failed', failure, retryState }));
  }
}

function timeOut(
  host: ActivityHost,
  activity: PendingActivity,
  { attempt, type }: { readonly attempt: Attempt; readonly type: number },
): void {
  if (activity.current !== attempt || attempt.isOver) return;
  abandonAttempt(activity);
  const failure = timeoutFailure(type, activity);
  const end = (retryState: number): End => ({ type: 'timedOut', failure, retryState });
  if (type === TIMEOUT.scheduleToClose) endActivity(host, activity, end(RETRY.timeout));
  else retryOrEnd(host, activity, failure, end);
}

/** Returns the failure of an activity that has taken too long. */
export function timeoutFailure(
  type: number,
  { details, lastFailure }: Pick<PendingActivity, 'details' | 'lastFailure'> = NOTHING_KNOWN,
): Failure {
  return {
    message: `activity ${TIMEOUT_NAMES[type]} timeout`,
    source: 'Server',
    timeoutFailureInfo: {
      timeoutType: type,
      ...(details.length > 0 && { lastHeartbeatDetails: { payloads: [...details] } }),
    },
    ...(lastFailure && { cause: lastFailure }),
  };
}

const NOTHING_KNOWN = { details: [], lastFailure: null };

/** Temporal's defaults for a retry policy. */
const DEFAULTS = { initialMs: 1_000, coefficient: 2, maximumIntervals: 100 };

/** Starts the next attempt after the interval of the policy, or ends the activity. */
function retryOrEnd(
  host: ActivityHost,
  activity: PendingActivity,
  failure: Failure,
  end: (retryState: number) => End,
): void {
  const { attributes, attempt, scheduledAt } = activity;
  const { retryPolicy: policy } = attributes;
  const info = failure.applicationFailureInfo;
  const isFinal =
    info?.nonRetryable === true ||
    policy?.nonRetryableErrorTypes?.includes(info?.type ?? '') === true;
  if (isFinal) return endActivity(host, activity, end(RETRY.nonRetryable));
  if (activity.cancelRequested !== null) {
    return endActivity(host, activity, end(RETRY.nonRetryable));
  }
  const maximum = policy?.maximumAttempts ?? 0;
  if (maximum > 0 && attempt >= maximum) {
    return endActivity(host, activity, end(RETRY.maximumAttempts));
  }
  const initialMs = optionalTsToMs(policy?.initialInterval) ?? DEFAULTS.initialMs;
  const longestMs =
    optionalTsToMs(policy?.maximumInterval) || DEFAULTS.maximumIntervals * initialMs;
  const growth = (policy?.backoffCoefficient || DEFAULTS.coefficient) ** (attempt - 1);
  const delayMs = optionalTsToMs(info?.nextRetryDelay) || Math.min(initialMs * growth, longestMs);
  const at = host.clock.now() + delayMs;
  const scheduleToClose = optionalTsToMs(attributes.scheduleToCloseTimeout) ?? 0;
  if (scheduleToClose > 0 && at > scheduledAt + scheduleToClose) {
    return endActivity(host, activity, end(RETRY.timeout));
  }
  clearTimers(activity);
  activity.current = null;
  activity.lastFailure = failure;
  activity.dueAt = at;
  activity.timers.push(host.clock.set({ at, kind: 'retry' }, () => startAttempt(host, activity)));
}

type End =
  | { readonly type: 'completed'; readonly result: Payload | null | undefined }
  | {
      readonly type: 'failed' | 'timedOut';
      readonly failure: Failure;
      readonly retryState: number;
    }
  | {
      readonly type: 'cancelled';
      readonly details: AttributesOf<'activityTaskCanceled'>['details'];
    };

/** Records the end of an activity, with its start: the server writes both at the end. */
function endActivity(host: ActivityHost, activity: PendingActivity, end: End): void {
  const { segment, scheduledEvent, attempt, lastFailure, cancelRequested } = activity;
  clearTimers(activity);
  noteEnd(host.probes, activity, end.type);
  if (activity.current !== null) activity.current.isOver = true;
  host.pending.get(segment)?.delete(scheduledEvent);
  const at = host.clock.now();
  const scheduledEventId = toId(scheduledEvent);
  host.report(segment, () => {
    const started = append(segment, {
      kind: 'activityTaskStarted',
      at,
      attributes: { scheduledEventId, attempt, ...(lastFailure && { lastFailure }) },
    });
    const place = { scheduledEventId, startedEventId: toId(started) };
    if (end.type === 'completed') {
      const result = { payloads: end.result ? [end.result] : [] };
      append(segment, { kind: 'activityTaskCompleted', at, attributes: { ...place, result } });
    } else if (end.type === 'cancelled') {
      const latestCancelRequestedEventId = toId(cancelRequested ?? 0);
      const attributes = { ...place, latestCancelRequestedEventId, details: end.details ?? null };
      append(segment, { kind: 'activityTaskCanceled', at, attributes });
    } else {
      const { failure, retryState } = end;
      const kind = end.type === 'failed' ? 'activityTaskFailed' : 'activityTaskTimedOut';
      append(segment, { kind, at, attributes: { ...place, failure, retryState } });
    }
  });
}
