import { type ActivationJob, type WorkflowCommand, msToTs } from '../temporal/sdk-internals.js';
import {
  cancelledChild,
  isResolvedOnCancel,
  ACTIVITY_CANCELLATION,
  type Machine,
  type Machines,
  addMachine,
  cancelledActivity,
  machineOf,
  passesCancelOn,
  recordMachine,
  resolvesOnCancel,
} from './jobs.js';
import {
  type LocalActivity,
  type Outgoing,
  type TaskEnd,
  marker,
  toId,
  toJson,
  type Update,
} from './segment.js';
import { type AttributesOf, type EventKind, NAMESPACE } from './events.js';

/** What one workflow task collects. */
export interface TaskCommands {
  readonly machines: Machines;
  readonly taskQueue: string;
  readonly outgoing: Outgoing[];
  /** What the workflow learns at once, within the task. */
  readonly jobs: ActivationJob[];
  readonly locals: LocalActivity[];
  readonly updates: ReadonlyMap<string, Update>;
  /** Updates that the workflow has refused, with the failure. */
  readonly refused: Map<Update, Rejection>;
  /** The patches that earlier tasks have recorded. */
  readonly patches: Set<string>;
}

type Rejection = NonNullable<NonNullable<WorkflowCommand['updateResponse']>['rejected']>;

/** Takes one command of the workflow. */
export function takeCommand(task: TaskCommands, command: WorkflowCommand): void {
  const { userMetadata } = command;
  const add = <K extends EventKind>(one: Outgoing<K>): void => {
    task.outgoing.push({ ...one, ...(userMetadata && { userMetadata }) });
  };
  if (takeTimer(task, command, add) || takeActivity(task, command, add)) return;
  if (takeChild(task, command, add) || takeUpdate(task, command, add)) return;
  if (takeProperty(task, command, add) || takeEnd(command, add)) return;
  const name = Object.keys(command).find((key) => key !== 'userMetadata') ?? 'unknown';
  throw new Error(`in memory: a workflow of perdure gives no command ${name}`);
}

type Add = <K extends EventKind>(one: Outgoing<K>) => void;

/** Drops a command that the task has not recorded yet. */
function unsend({ outgoing }: TaskCommands, machine: Machine): void {
  const at = outgoing.findIndex((one) => one.machine === machine);
  if (at >= 0) outgoing.splice(at, 1);
  machine.isResolved = true;
}

function takeTimer(task: TaskCommands, command: WorkflowCommand, add: Add): boolean {
  const { startTimer, cancelTimer } = command;
  const { machines } = task;
  if (startTimer) {
    const seq = startTimer.seq ?? 0;
    const machine = { type: 'timer', seq, event: null, isResolved: false } as const;
    add({
      kind: 'timerStarted',
      subject: `timer ${seq}`,
      machine: addMachine(machines, { ...machine }),
      attributes: ({ completed }) => ({
        timerId: String(seq),
        startToFireTimeout: startTimer.startToFireTimeout ?? null,
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
    return true;
  }
  if (!cancelTimer) return false;
  const machine = machineOf(machines, 'timer', cancelTimer.seq);
  if (machine.event === null) unsend(task, machine);
  else {
    add({
      kind: 'timerCanceled',
      subject: `timer ${machine.seq}`,
      attributes: ({ completed }) => ({
        timerId: String(machine.seq),
        startedEventId: toId(machine.event ?? 0),
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
  }
  return true;
}

function takeActivity(task: TaskCommands, command: WorkflowCommand, add: Add): boolean {
  const { scheduleActivity: scheduled, requestCancelActivity, scheduleLocalActivity } = command;
  const { machines } = task;
  if (scheduleLocalActivity) {
    const { userMetadata } = command;
    task.locals.push({ scheduled: scheduleLocalActivity, userMetadata });
    return true;
  }
  if (scheduled) {
    const [activityId, activityType] = [scheduled.activityId ?? '', scheduled.activityType ?? ''];
    add({
      kind: 'activityTaskScheduled',
      subject: `activity ${activityId} ${activityType}`,
      machine: addMachine(machines, {
        type: 'activity',
        seq: scheduled.seq ?? 0,
        activityId,
        activityType,
        cancellation: scheduled.cancellationType ?? ACTIVITY_CANCELLATION.try,
        event: null,
        isResolved: false,
      }),
      attributes: ({ completed }) => ({
        activityId,
        activityType: { name: activityType },
        taskQueue: { name: scheduled.taskQueue ?? '' },
        header: { fields: scheduled.headers ?? {} },
        input: { payloads: scheduled.arguments ?? [] },
        scheduleToCloseTimeout: scheduled.scheduleToCloseTimeout ?? null,
        startToCloseTimeout: scheduled.startToCloseTimeout ?? null,
        heartbeatTimeout: scheduled.heartbeatTimeout ?? null,
        retryPolicy: scheduled.retryPolicy ?? null,
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
    return true;
  }
  if (!requestCancelActivity) return false;
  const machine = machineOf(machines, 'activity', requestCancelActivity.seq);
  if (machine.isResolved) return true;
  if (machine.event === null) {
    unsend(task, machine);
    task.jobs.push(cancelledActivity(machine));
    return true;
  }
  if (machine.cancellation !== ACTIVITY_CANCELLATION.abandon) {
    add({
      kind: 'activityTaskCancelRequested',
      subject: `activity ${machine.activityId}`,
      attributes: ({ completed }) => ({
        scheduledEventId: toId(machine.event ?? 0),
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
  }
  if (isResolvedOnCancel(machine)) task.jobs.push(cancelledActivity(machine));
  return true;
}

function takeChild(task: TaskCommands, command: WorkflowCommand, add: Add): boolean {
  const { startChildWorkflowExecution: start, cancelChildWorkflowExecution: cancel } = command;
  const { machines } = task;
  if (start) {
    const [workflowId, workflowType] = [start.workflowId ?? '', start.workflowType ?? ''];
    const namespace = start.namespace ?? NAMESPACE;
    add({
      kind: 'startChildWorkflowExecutionInitiated',
      subject: `workflow ${workflowId}`,
      machine: addMachine(machines, {
        type: 'child',
        seq: start.seq ?? 0,
        workflowId,
        workflowType,
        namespace,
        cancellation: start.cancellationType ?? 0,
        event: null,
        isResolved: false,
        runId: '',
        startedEvent: 0,
      }),
      attributes: ({ completed }) => ({
        namespace,
        workflowId,
        workflowType: { name: workflowType },
        taskQueue: { name: start.taskQueue ?? task.taskQueue },
        input: { payloads: start.input ?? [] },
        header: { fields: start.headers ?? {} },
        ...(start.memo && { memo: { fields: start.memo } }),
        searchAttributes: start.searchAttributes ?? null,
        workflowTaskTimeout: start.workflowTaskTimeout ?? null,
        parentClosePolicy: start.parentClosePolicy ?? 0,
        workflowIdReusePolicy: start.workflowIdReusePolicy ?? 0,
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
    return true;
  }
  if (!cancel) return false;
  const machine = machineOf(machines, 'child', cancel.childWorkflowSeq);
  if (machine.isResolved) return true;
  if (machine.event === null) {
    unsend(task, machine);
    const failure = {
      message: 'Child Workflow Execution cancelled before scheduled',
      cause: { canceledFailureInfo: {} },
    };
    const { seq } = machine;
    task.jobs.push({ resolveChildWorkflowExecutionStart: { seq, cancelled: { failure } } });
    return true;
  }
  if (passesCancelOn(machine)) {
    const { workflowId, runId, namespace } = machine;
    add({
      kind: 'requestCancelExternalWorkflowExecutionInitiated',
      subject: `workflow ${workflowId}`,
      machine: { type: 'cancel', seq: 0, event: null, isResolved: false, child: machine },
      attributes: ({ completed }) => ({
        namespace,
        workflowExecution: { workflowId, runId },
        childWorkflowOnly: true,
        reason: cancel.reason ?? '',
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
  }
  if (resolvesOnCancel(machine)) task.jobs.push(cancelledChild(machine));
  return true;
}

function takeUpdate(task: TaskCommands, { updateResponse }: WorkflowCommand, add: Add): boolean {
  if (!updateResponse) return false;
  const { protocolInstanceId: id, accepted, rejected, completed } = updateResponse;
  const update = task.updates.get(id ?? '');
  if (update === undefined) throw new Error(`in memory: no update has the id ${id}`);
  const isKnown =
    update.acceptedEvent !== null || task.outgoing.some((one) => one.update === update);
  if (rejected && !isKnown) {
    task.refused.set(update, rejected);
    return true;
  }
  if (accepted) {
    add({
      kind: 'workflowExecutionUpdateAccepted',
      subject: `update ${update.id}`,
      update,
      attributes: ({ completed: event }) => ({
        protocolInstanceId: update.id,
        acceptedRequestMessageId: `${update.id}/request`,
        acceptedRequestSequencingEventId: toId(event - 2),
        acceptedRequest: update.request,
      }),
    });
    return true;
  }
  const outcome = rejected
    ? { failure: rejected }
    : { success: { payloads: completed ? [completed] : [] } };
  add({
    kind: 'workflowExecutionUpdateCompleted',
    subject: `update ${update.id}`,
    update,
    attributes: () => ({
      meta: update.request.meta ?? null,
      acceptedEventId: toId(update.acceptedEvent ?? 0),
      outcome,
    }),
  });
  return true;
}

const VERSIONS = 'TemporalChangeVersion';

function takeProperty(task: TaskCommands, command: WorkflowCommand, add: Add): boolean {
  const { modifyWorkflowProperties, upsertWorkflowSearchAttributes, setPatchMarker } = command;
  if (modifyWorkflowProperties) {
    add({
      kind: 'workflowPropertiesModified',
      subject: 'memo',
      attributes: ({ completed }) => ({
        upsertedMemo: modifyWorkflowProperties.upsertedMemo ?? null,
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
    return true;
  }
  const upsert = (searchAttributes: AttributesOf<typeof UPSERT>['searchAttributes']): void => {
    add({
      kind: UPSERT,
      subject: 'search attributes',
      attributes: ({ completed }) => ({
        searchAttributes: searchAttributes ?? null,
        workflowTaskCompletedEventId: toId(completed),
      }),
    });
  };
  if (upsertWorkflowSearchAttributes) {
    upsert(upsertWorkflowSearchAttributes.searchAttributes);
    return true;
  }
  if (!setPatchMarker) return false;
  const { patchId: id = '', deprecated } = setPatchMarker;
  add(marker('core_patch', `patch ${id}`, { 'patch-data': toJson({ id, deprecated }) }));
  task.patches.add(id ?? '');
  const versions = toJson([...task.patches].toSorted());
  const type = new TextEncoder().encode('KeywordList');
  upsert({
    indexedFields: { [VERSIONS]: { ...versions, metadata: { ...versions.metadata, type } } },
  });
  return true;
}

const UPSERT = 'upsertWorkflowSearchAttributes';

/** Where a command was recorded. */
function placeOf({ completed }: TaskEnd) {
  return { workflowTaskCompletedEventId: toId(completed) };
}

function takeEnd(command: WorkflowCommand, add: Add): boolean {
  const {
    completeWorkflowExecution: completed,
    failWorkflowExecution: failed,
    cancelWorkflowExecution: cancelled,
    continueAsNewWorkflowExecution: continued,
  } = command;
  if (completed) {
    const payloads = completed.result ? [completed.result] : [];
    const attributes = (end: TaskEnd) => ({ ...placeOf(end), result: { payloads } });
    add({ kind: 'workflowExecutionCompleted', subject: 'end', attributes });
  } else if (failed) {
    const failure = failed.failure ?? null;
    const attributes = (end: TaskEnd) => ({
      ...placeOf(end),
      failure,
      retryState: NO_RETRY_POLICY,
    });
    add({ kind: 'workflowExecutionFailed', subject: 'end', attributes });
  } else if (cancelled) {
    const details = cancelled.details ?? null;
    const attributes = (end: TaskEnd) => ({ ...placeOf(end), details });
    add({ kind: 'workflowExecutionCanceled', subject: 'end', attributes });
  } else if (continued) {
    add({
      kind: 'workflowExecutionContinuedAsNew',
      subject: 'end',
      attributes: (end) => ({
        ...placeOf(end),
        newExecutionRunId: end.newRunId,
        workflowType: { name: continued.workflowType ?? '' },
        taskQueue: { name: continued.taskQueue ?? '' },
        input: { payloads: continued.arguments ?? [] },
        header: { fields: continued.headers ?? {} },
        ...(continued.memo && { memo: { fields: continued.memo } }),
        searchAttributes: continued.searchAttributes ?? null,
        initiator: BY_WORKFLOW,
        backoffStartInterval: msToTs(0),
      }),
    });
  } else return false;
  return true;
}

const NO_RETRY_POLICY = 5;
/** `CONTINUE_AS_NEW_INITIATOR_WORKFLOW`. */
const BY_WORKFLOW = 1;

/** Notes the event that has recorded a command. */
export function commandRecorded(machines: Machines, outgoing: Outgoing, event: number): void {
  if (outgoing.machine !== undefined) recordMachine(machines, outgoing.machine, event);
  if (outgoing.kind === 'workflowExecutionUpdateAccepted' && outgoing.update !== undefined) {
    outgoing.update.acceptedEvent = event;
  }
}
