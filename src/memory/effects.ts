import type { Payload } from '@temporalio/common';
import type { RawEvent } from '../history/history-event.js';
import { optionalTsToMs } from '../temporal/sdk-internals.js';
import { abandonActivities, cancelActivity, scheduleActivity } from './activities.js';
import { toId, STATUS, type Segment, append, isClosed, notifyWatchers } from './segment.js';
import { type AttributesOf, idOf } from './events.js';
import { type MemoryServer, executionOf, report, startSegment } from './server.js';

/** Does what the event of a command asks for. */
export function follow(server: MemoryServer, segment: Segment, event: RawEvent): void {
  const id = idOf(event);
  if (event.activityTaskScheduledEventAttributes) {
    scheduleActivity(server.activities, segment, event);
  }
  const cancelled = event.activityTaskCancelRequestedEventAttributes;
  if (cancelled) {
    const scheduled = Number(cancelled.scheduledEventId);
    cancelActivity(server.activities, segment, { scheduled, requested: id });
  }
  followTimer(server, segment, event);
  followUpdate(segment, event);
  merge(segment.memo, event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields);
  const upserted = event.upsertWorkflowSearchAttributesEventAttributes?.searchAttributes;
  merge(segment.attributes, upserted?.indexedFields);
  const initiated = event.startChildWorkflowExecutionInitiatedEventAttributes;
  if (initiated) startChild(server, segment, { event, initiated });
  const external = event.requestCancelExternalWorkflowExecutionInitiatedEventAttributes;
  if (external) cancelChild(server, segment, { id, external });
  if (endStatus(event) !== null) closeSegment(server, segment, event);
}

function merge(map: Map<string, Payload>, fields?: Readonly<Record<string, Payload>> | null): void {
  for (const [name, value] of Object.entries(fields ?? {})) map.set(name, value);
}

function followTimer(server: MemoryServer, segment: Segment, event: RawEvent): void {
  const id = idOf(event);
  const started = event.timerStartedEventAttributes;
  if (started) {
    const at = server.clock.now() + (optionalTsToMs(started.startToFireTimeout) ?? 0);
    const fire = (): void => {
      segment.timers.delete(id);
      const attributes = { timerId: started.timerId ?? '', startedEventId: toId(id) };
      const events = (): void =>
        void append(segment, { kind: 'timerFired', at: server.clock.now(), attributes });
      report(server, segment, events, id);
    };
    segment.timers.set(id, server.clock.set({ at, kind: 'workflow' }, fire));
  }
  const canceled = event.timerCanceledEventAttributes;
  if (!canceled) return;
  const timer = Number(canceled.startedEventId);
  segment.timers.get(timer)?.();
  segment.timers.delete(timer);
  segment.buffered = segment.buffered.filter((one) => one.timer !== timer);
}

function followUpdate(segment: Segment, event: RawEvent): void {
  const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
  const completed = event.workflowExecutionUpdateCompletedEventAttributes;
  const update = segment.updates.get(
    accepted?.protocolInstanceId ?? completed?.meta?.updateId ?? '',
  );
  if (update === undefined) return;
  if (completed?.outcome) update.outcome = completed.outcome;
  for (const wait of update.waiting) wait();
}

type Initiated = AttributesOf<'startChildWorkflowExecutionInitiated'>;

/** `START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS`. */
const ALREADY_EXISTS = 1;
/** `WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE`. */
export const REJECT_DUPLICATE = 3;

function startChild(
  server: MemoryServer,
  segment: Segment,
  { event, initiated }: { readonly event: RawEvent; readonly initiated: Initiated },
): void {
  const workflowId = initiated.workflowId ?? '';
  const workflowType = { name: initiated.workflowType?.name ?? '' };
  const initiatedEventId = toId(idOf(event));
  const existing = server.runs.get(workflowId)?.at(-1);
  const isTaken =
    existing !== undefined &&
    (!isClosed(existing) || Number(initiated.workflowIdReusePolicy) === REJECT_DUPLICATE);
  if (isTaken) {
    const attributes = { workflowId, workflowType, initiatedEventId, cause: ALREADY_EXISTS };
    const kind = 'startChildWorkflowExecutionFailed';
    const at = server.clock.now();
    return report(server, segment, () => void append(segment, { kind, at, attributes }));
  }
  const { input, header, memo, searchAttributes } = initiated;
  const root = rootOf(segment);
  const child = startSegment(server, {
    workflowId,
    workflowType: workflowType.name,
    taskQueue: initiated.taskQueue?.name ?? segment.taskQueue,
    started: {
      input: input ?? null,
      header: header ?? null,
      memo: memo ?? null,
      searchAttributes: searchAttributes ?? null,
    },
    caller: { segment, initiated: idOf(event) },
    root,
    ...(event.userMetadata && { userMetadata: event.userMetadata }),
  });
  segment.children.set(idOf(event), child);
  report(server, segment, () => {
    child.startedEvent = append(segment, {
      kind: 'childWorkflowExecutionStarted',
      at: server.clock.now(),
      attributes: { initiatedEventId, workflowExecution: executionOf(child), workflowType },
    });
  });
}

function rootOf(segment: Segment) {
  const [started] = segment.events;
  const root = started?.workflowExecutionStartedEventAttributes?.rootWorkflowExecution;
  return root ?? executionOf(segment);
}

type External = AttributesOf<'requestCancelExternalWorkflowExecutionInitiated'>;

function cancelChild(
  server: MemoryServer,
  segment: Segment,
  { id, external }: { readonly id: number; readonly external: External },
): void {
  const workflowExecution = external.workflowExecution ?? null;
  const child = server.runs.get(workflowExecution?.workflowId ?? '')?.at(-1);
  const place = { initiatedEventId: toId(id), workflowExecution };
  const isFound = child !== undefined && !isClosed(child);
  if (isFound)
    requestCancel(server, child, {
      cause: external.reason ?? '',
      externalWorkflowExecution: executionOf(segment),
    });
  const kind = isFound
    ? 'externalWorkflowExecutionCancelRequested'
    : 'requestCancelExternalWorkflowExecutionFailed';
  const at = server.clock.now();
  report(server, segment, () => void append(segment, { kind, at, attributes: place }));
}

/** Records that a run is to be canceled; a second request changes nothing. */
export function requestCancel(
  server: MemoryServer,
  segment: Segment,
  attributes: AttributesOf<'workflowExecutionCancelRequested'>,
): void {
  const isRequested = segment.events.some(
    (event) => event.workflowExecutionCancelRequestedEventAttributes,
  );
  if (isRequested) return;
  const kind = 'workflowExecutionCancelRequested';
  const at = server.clock.now();
  report(server, segment, () => void append(segment, { kind, at, attributes }));
}

/** Ends a run at once. */
export function terminate(server: MemoryServer, segment: Segment, reason: string): void {
  const kind = 'workflowExecutionTerminated';
  append(segment, { kind, at: server.clock.now(), attributes: { reason } });
  const last = segment.events.at(-1);
  if (last !== undefined) closeSegment(server, segment, last);
}

/** Returns the status of a run after its last event; null for any other event. */
function endStatus(event: RawEvent): number | null {
  if (event.workflowExecutionCompletedEventAttributes) return STATUS.completed;
  if (event.workflowExecutionFailedEventAttributes) return STATUS.failed;
  if (event.workflowExecutionCanceledEventAttributes) return STATUS.canceled;
  if (event.workflowExecutionTerminatedEventAttributes) return STATUS.terminated;
  return event.workflowExecutionContinuedAsNewEventAttributes ? STATUS.continued : null;
}

function closeSegment(server: MemoryServer, segment: Segment, last: RawEvent): void {
  segment.status = endStatus(last) ?? STATUS.terminated;
  segment.closedAt = server.clock.now();
  for (const cancel of segment.timers.values()) cancel();
  segment.timers.clear();
  abandonActivities(server.activities, segment);
  const continued = last.workflowExecutionContinuedAsNewEventAttributes;
  if (continued) continueSegment(server, segment, continued);
  else {
    closeChildren(server, segment);
    tellCaller(server, segment, last);
  }
  for (const update of segment.updates.values()) {
    if (update.outcome === null && update.acceptedEvent !== null) update.outcome = ABORTED;
    for (const wait of update.waiting) wait();
  }
  notifyWatchers(segment);
}

const ABORTED = {
  failure: {
    message: 'Workflow Update failed because the Workflow completed before the Update completed.',
    source: 'Server',
    applicationFailureInfo: { type: 'AcceptedUpdateCompletedWorkflow', nonRetryable: true },
  },
};

function continueSegment(
  server: MemoryServer,
  segment: Segment,
  continued: AttributesOf<'workflowExecutionContinuedAsNew'>,
): void {
  const { input, header, memo, searchAttributes } = continued;
  const before = segment.events[0]?.workflowExecutionStartedEventAttributes;
  const { caller, workflowId } = segment;
  const root = before?.rootWorkflowExecution;
  const next = startSegment(server, {
    workflowId,
    workflowType: continued.workflowType?.name ?? segment.workflowType,
    taskQueue: continued.taskQueue?.name ?? segment.taskQueue,
    runId: continued.newExecutionRunId ?? '',
    started: {
      input: input ?? null,
      header: header ?? null,
      memo: memo ?? before?.memo ?? null,
      searchAttributes: searchAttributes ?? before?.searchAttributes ?? null,
    },
    caller,
    ...(root && { root }),
    previous: segment,
  });
  if (caller !== null) caller.segment.children.set(caller.initiated, next);
  next.startedEvent = segment.startedEvent;
  // The next segment gets what this one has not seen.
  for (const update of segment.updates.values()) {
    if (update.isDelivered || update.outcome !== null) continue;
    segment.updates.delete(update.id);
    next.updates.set(update.id, update);
  }
}

/** Numbers of `ParentClosePolicy`. */
const PARENT_CLOSE = { terminate: 1, abandon: 2, requestCancel: 3 } as const;

function closeChildren(server: MemoryServer, segment: Segment): void {
  for (const [initiated, child] of segment.children) {
    if (isClosed(child)) continue;
    const event = segment.events[initiated - 1];
    const initiation = event?.startChildWorkflowExecutionInitiatedEventAttributes;
    const policy = Number(initiation?.parentClosePolicy);
    if (policy === PARENT_CLOSE.requestCancel)
      requestCancel(server, child, { cause: 'the caller has ended' });
    else if (policy !== PARENT_CLOSE.abandon) terminate(server, child, 'the caller has ended');
  }
}

/** Reports the end of a called workflow to its caller. */
function tellCaller(server: MemoryServer, child: Segment, last: RawEvent): void {
  const { caller } = child;
  if (caller === null) return;
  const { segment, initiated } = caller;
  const place = {
    workflowExecution: executionOf(child),
    workflowType: { name: child.workflowType },
    initiatedEventId: toId(initiated),
    startedEventId: toId(child.startedEvent),
  };
  const completed = last.workflowExecutionCompletedEventAttributes;
  const failed = last.workflowExecutionFailedEventAttributes;
  const at = server.clock.now();
  report(server, segment, () => {
    if (completed) {
      const attributes = { ...place, result: completed.result ?? null };
      append(segment, { kind: 'childWorkflowExecutionCompleted', at, attributes });
    } else if (failed) {
      const { failure, retryState } = failed;
      const attributes = { ...place, failure: failure ?? null, retryState: retryState ?? 0 };
      append(segment, { kind: 'childWorkflowExecutionFailed', at, attributes });
    } else {
      const isCanceled = Boolean(last.workflowExecutionCanceledEventAttributes);
      const kind = isCanceled
        ? 'childWorkflowExecutionCanceled'
        : 'childWorkflowExecutionTerminated';
      append(segment, { kind, at, attributes: place });
    }
  });
}
