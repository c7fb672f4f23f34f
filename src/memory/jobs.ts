import type { RawEvent } from '../history/history-event.js';
import { type ActivationJob, type Int64, workerRuntime } from '../temporal/sdk-internals.js';
import { NAMESPACE, type AttributesOf } from './events.js';

/*
 * What a workflow waits for. The workflow numbers its commands (`seq`), and the history numbers events;
 * a machine connects the two, as the machines of the SDK's core do.
 */

/** Numbers of `ActivityCancellationType`. */
export const ACTIVITY_CANCELLATION = { try: 0, wait: 1, abandon: 2 } as const;
/** Numbers of `ChildWorkflowCancellationType`. */
const CHILD_CANCELLATION = { abandon: 0, try: 1, wait: 2, waitRequested: 3 } as const;

interface MachineBase {
  readonly seq: number;
  /** The id of the event that recorded the command; null until it is recorded. */
  event: number | null;
  /** Whether the workflow has its result. */
  isResolved: boolean;
}

interface ActivityMachine extends MachineBase {
  readonly type: 'activity';
  readonly activityId: string;
  readonly activityType: string;
  readonly cancellation: number;
}

interface ChildMachine extends MachineBase {
  readonly type: 'child';
  readonly workflowId: string;
  readonly workflowType: string;
  readonly namespace: string;
  readonly cancellation: number;
  runId: string;
  startedEvent: number;
}

interface TimerMachine extends MachineBase {
  readonly type: 'timer';
}

/** The cancellation of a called workflow. */
interface CancelMachine extends MachineBase {
  readonly type: 'cancel';
  readonly child: ChildMachine;
}

export type Machine = ActivityMachine | ChildMachine | TimerMachine | CancelMachine;

/** The machines of one cached workflow. */
export interface Machines {
  readonly bySeq: Map<string, Machine>;
  readonly byEvent: Map<number, Machine>;
}

export function createMachines(): Machines {
  return { bySeq: new Map(), byEvent: new Map() };
}

export function addMachine<M extends Machine>({ bySeq }: Machines, machine: M): M {
  bySeq.set(`${machine.type} ${machine.seq}`, machine);
  return machine;
}

/** Notes the event that has recorded a machine's command. */
export function recordMachine({ byEvent }: Machines, machine: Machine, event: number): void {
  machine.event = event;
  byEvent.set(event, machine);
}

/** Returns the machine of a command. Throws if there is none. */
export function machineOf<T extends Machine['type']>(
  { bySeq }: Machines,
  type: T,
  seq: number | null | undefined,
): Extract<Machine, { type: T }> {
  const machine = bySeq.get(`${type} ${seq ?? 0}`);
  if (machine?.type !== type) throw new Error(`in memory: the workflow has no ${type} ${seq}`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked above
  return machine as Extract<Machine, { type: T }>;
}

type Failure = NonNullable<AttributesOf<'activityTaskFailed'>['failure']>;
type ActivityInfo = NonNullable<Failure['activityFailureInfo']>;

/** Returns the failure of an activity as the workflow gets it. */
function activityFailure(
  { activityId, activityType }: ActivityMachine,
  message: string,
  info: Omit<ActivityInfo, 'activityId' | 'activityType'> & { readonly cause: Failure | null },
): Failure {
  const { cause, ...rest } = info;
  return {
    message,
    cause,
    activityFailureInfo: { ...rest, activityId, activityType: { name: activityType } },
  };
}

/** `RETRY_STATE_CANCEL_REQUESTED` and `RETRY_STATE_NON_RETRYABLE_FAILURE`. */
const CANCEL_REQUESTED = 7;
const NON_RETRYABLE = 2;

/** Returns the job that ends a canceled activity. */
export function cancelledActivity(
  machine: ActivityMachine,
  event: AttributesOf<'activityTaskCanceled'> = {},
): ActivationJob {
  machine.isResolved = true;
  const { details, identity, startedEventId, scheduledEventId } = event;
  const failure = activityFailure(machine, 'Activity cancelled', {
    cause: { canceledFailureInfo: { details: details ?? null } },
    identity: identity ?? '',
    retryState: CANCEL_REQUESTED,
    startedEventId: startedEventId ?? null,
    scheduledEventId: scheduledEventId ?? null,
  });
  return {
    resolveActivity: { seq: machine.seq, result: { cancelled: { failure } }, isLocal: false },
  };
}

type ChildFailureInfo = NonNullable<Failure['childWorkflowExecutionFailureInfo']>;

/** Returns the failure of a called workflow as its caller gets it. */
function childFailure(
  { workflowId, runId, workflowType, namespace, event, startedEvent }: ChildMachine,
  { toInt64 }: { readonly toInt64: (value: number) => ChildFailureInfo['initiatedEventId'] },
  failure: {
    readonly message: string;
    readonly cause: Failure | null;
    readonly retryState?: number | null;
  },
): Failure {
  const { message, cause, retryState = NON_RETRYABLE } = failure;
  return {
    message,
    cause,
    childWorkflowExecutionFailureInfo: {
      namespace,
      workflowExecution: { workflowId, runId },
      workflowType: { name: workflowType },
      initiatedEventId: toInt64(event ?? 0) ?? null,
      startedEventId: toInt64(startedEvent) ?? null,
      retryState: retryState ?? NON_RETRYABLE,
    },
  };
}

/** Whether the cancellation of a called workflow resolves it at once, whatever it does. */
export function resolvesOnCancel({ cancellation }: ChildMachine): boolean {
  return cancellation === CHILD_CANCELLATION.abandon || cancellation === CHILD_CANCELLATION.try;
}

/** Whether a called workflow counts as canceled when its cancellation was requested. */
function resolvesOnRequest({ cancellation }: ChildMachine): boolean {
  return cancellation === CHILD_CANCELLATION.waitRequested;
}

/** Whether a called workflow is canceled at all. */
export function passesCancelOn({ cancellation }: ChildMachine): boolean {
  return cancellation !== CHILD_CANCELLATION.abandon;
}

/** What a job needs beside its event. */
interface JobContext {
  readonly machines: Machines;
  readonly randomnessSeed: Int64;
}

/** Returns the job that tells a workflow of an event; null if it does not learn of the event. */
export function toJob(event: RawEvent, context: JobContext): ActivationJob | null {
  return toRunJob(event, context) ?? toActivityJob(event, context) ?? toChildJob(event, context);
}

/** The jobs of the run itself: its start, messages, and timers. */
function toRunJob(event: RawEvent, { machines, randomnessSeed }: JobContext): ActivationJob | null {
  const started = event.workflowExecutionStartedEventAttributes;
  if (started) return { initializeWorkflow: initialize(event, started, randomnessSeed) };
  const signal = event.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const { signalName, input, identity, header } = signal;
    return {
      signalWorkflow: {
        signalName: signalName ?? '',
        input: input?.payloads ?? [],
        identity: identity ?? '',
        headers: header?.fields ?? {},
      },
    };
  }
  if (event.workflowExecutionCancelRequestedEventAttributes) return { cancelWorkflow: {} };
  const fired = event.timerFiredEventAttributes;
  if (!fired) return null;
  const machine = machines.byEvent.get(Number(fired.startedEventId));
  return machine === undefined ? null : { fireTimer: { seq: machine.seq } };
}

type Started = NonNullable<RawEvent['workflowExecutionStartedEventAttributes']>;

function initialize(
  { eventTime }: RawEvent,
  started: Started,
  randomnessSeed: Int64,
): NonNullable<ActivationJob['initializeWorkflow']> {
  const { parentWorkflowExecution: parent, rootWorkflowExecution: root } = started;
  return {
    workflowType: started.workflowType?.name ?? '',
    workflowId: started.workflowId ?? '',
    arguments: started.input?.payloads ?? [],
    randomnessSeed,
    headers: started.header?.fields ?? {},
    identity: started.identity ?? '',
    ...(parent && { parentWorkflowInfo: { namespace: NAMESPACE, ...parent } }),
    ...(root && { rootWorkflow: root }),
    continuedFromExecutionRunId: started.continuedExecutionRunId ?? '',
    firstExecutionRunId: started.firstExecutionRunId ?? '',
    originalExecutionRunId: started.originalExecutionRunId ?? '',
    attempt: started.attempt ?? 1,
    cronSchedule: started.cronSchedule ?? '',
    retryPolicy: started.retryPolicy ?? null,
    workflowTaskTimeout: started.workflowTaskTimeout ?? null,
    memo: started.memo ?? null,
    searchAttributes: started.searchAttributes ?? null,
    startTime: eventTime ?? null,
  };
}

/** The ends of activities. */
function toActivityJob(event: RawEvent, { machines }: JobContext): ActivationJob | null {
  const completed = event.activityTaskCompletedEventAttributes;
  const failed = event.activityTaskFailedEventAttributes;
  const timedOut = event.activityTaskTimedOutEventAttributes;
  const cancelled = event.activityTaskCanceledEventAttributes;
  const ended = completed ?? failed ?? timedOut ?? cancelled;
  if (!ended) return null;
  const machine = machines.byEvent.get(Number(ended.scheduledEventId));
  if (machine?.type !== 'activity' || machine.isResolved) return null;
  if (cancelled) return cancelledActivity(machine, cancelled);
  machine.isResolved = true;
  if (completed) {
    const result = completed.result?.payloads?.[0] ?? null;
    return resolveActivity(machine, { completed: { result } });
  }
  const broken = failed ?? timedOut;
  const failure = activityFailure(
    machine,
    failed ? 'Activity task failed' : 'Activity task timed out',
    {
      cause: broken?.failure ?? null,
      identity: failed?.identity ?? '',
      retryState: broken?.retryState ?? 0,
      startedEventId: broken?.startedEventId ?? null,
      scheduledEventId: broken?.scheduledEventId ?? null,
    },
  );
  return resolveActivity(machine, { failed: { failure } });
}

type ActivityResolution = NonNullable<NonNullable<ActivationJob['resolveActivity']>['result']>;

function resolveActivity({ seq }: ActivityMachine, result: ActivityResolution): ActivationJob {
  return { resolveActivity: { seq, result, isLocal: false } };
}

/** The starts and ends of called workflows, and of signals to others. */
function toChildJob(event: RawEvent, { machines }: JobContext): ActivationJob | null {
  const started = event.childWorkflowExecutionStartedEventAttributes;
  if (started) {
    const machine = childAt(machines, started.initiatedEventId);
    if (machine === null) return null;
    machine.runId = started.workflowExecution?.runId ?? '';
    machine.startedEvent = Number(event.eventId);
    if (machine.isResolved) return null;
    const { seq, runId } = machine;
    return { resolveChildWorkflowExecutionStart: { seq, succeeded: { runId } } };
  }
  const refused = event.startChildWorkflowExecutionFailedEventAttributes;
  if (refused) {
    const machine = childAt(machines, refused.initiatedEventId);
    if (machine === null || machine.isResolved) return null;
    machine.isResolved = true;
    const { seq, workflowId, workflowType } = machine;
    const failed = { workflowId, workflowType, cause: refused.cause ?? 0 };
    return { resolveChildWorkflowExecutionStart: { seq, failed } };
  }
  return toChildEnd(event, machines) ?? toExternalJob(event, machines);
}

function childAt(
  { byEvent }: Machines,
  initiated: RawEvent['eventId'] | undefined,
): ChildMachine | null {
  const machine = byEvent.get(Number(initiated ?? 0));
  return machine?.type === 'child' ? machine : null;
}

type ChildResult = NonNullable<
  NonNullable<ActivationJob['resolveChildWorkflowExecution']>['result']
>;

function toChildEnd(event: RawEvent, machines: Machines): ActivationJob | null {
  const completed = event.childWorkflowExecutionCompletedEventAttributes;
  const failed = event.childWorkflowExecutionFailedEventAttributes;
  const cancelled = event.childWorkflowExecutionCanceledEventAttributes;
  const terminated = event.childWorkflowExecutionTerminatedEventAttributes;
  const ended = completed ?? failed ?? cancelled ?? terminated;
  if (!ended) return null;
  const machine = childAt(machines, ended.initiatedEventId);
  if (machine === null || machine.isResolved) return null;
  if (cancelled) return cancelledChild(machine);
  if (completed) {
    return resolveChild(machine, {
      completed: { result: completed.result?.payloads?.[0] ?? null },
    });
  }
  const failure = childFailure(machine, workerRuntime(), {
    message: `Child Workflow execution ${failed ? 'failed' : 'terminated'}`,
    cause: failed ? (failed.failure ?? null) : { message: 'Terminated', terminatedFailureInfo: {} },
    ...(failed && { retryState: failed.retryState ?? null }),
  });
  return resolveChild(machine, { failed: { failure } });
}

function resolveChild(machine: ChildMachine, result: ChildResult): ActivationJob {
  machine.isResolved = true;
  return { resolveChildWorkflowExecution: { seq: machine.seq, result } };
}

/** Returns the job that ends a canceled workflow for its caller. */
export function cancelledChild(machine: ChildMachine): ActivationJob {
  const failure = childFailure(machine, workerRuntime(), {
    message: 'Child Workflow execution cancelled',
    cause: { canceledFailureInfo: {} },
  });
  return resolveChild(machine, { cancelled: { failure } });
}

function toExternalJob(event: RawEvent, { byEvent }: Machines): ActivationJob | null {
  const requested = event.externalWorkflowExecutionCancelRequestedEventAttributes;
  const refused = event.requestCancelExternalWorkflowExecutionFailedEventAttributes;
  const ended = requested ?? refused;
  const machine = byEvent.get(Number(ended?.initiatedEventId ?? 0));
  if (machine?.type !== 'cancel') return null;
  const { child } = machine;
  return resolvesOnRequest(child) && !child.isResolved ? cancelledChild(child) : null;
}

/** The order of jobs in one activation, as the SDK's core sorts them; equal ones keep theirs. */
function rankOf(job: ActivationJob): number {
  if (job.initializeWorkflow) return 0;
  if (job.notifyHasPatch) return 1;
  if (job.updateRandomSeed) return 2;
  if (job.signalWorkflow || job.doUpdate) return 3;
  if (job.resolveActivity?.isLocal) return 5;
  return 4;
}

export function inOrder(jobs: readonly ActivationJob[]): ActivationJob[] {
  return jobs.toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** Whether a canceled activity is resolved without waiting for its end. */
export function isResolvedOnCancel({ cancellation }: ActivityMachine): boolean {
  return cancellation !== ACTIVITY_CANCELLATION.wait;
}
