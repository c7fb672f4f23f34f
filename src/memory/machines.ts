import type { ActivationJob } from '../temporal/sdk-internals.js';
import { type AttributesOf } from './events.js';

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

export interface ActivityMachine extends MachineBase {
  readonly type: 'activity';
  readonly activityId: string;
  readonly activityType: string;
  readonly cancellation: number;
}

export interface ChildMachine extends MachineBase {
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
export function activityFailure(
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
export function childFailure(
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
export function resolvesOnRequest({ cancellation }: ChildMachine): boolean {
  return cancellation === CHILD_CANCELLATION.waitRequested;
}

/** Whether a called workflow is canceled at all. */
export function passesCancelOn({ cancellation }: ChildMachine): boolean {
  return cancellation !== CHILD_CANCELLATION.abandon;
}
