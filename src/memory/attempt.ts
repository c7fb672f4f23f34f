import { SILENT_LOGGER } from '../temporal/sdk.js';
import { type Info, asyncLocalStorage } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { type Payload, defaultPayloadConverter, noopMetricMeter } from '@temporalio/common';
import {
  type ActivityAttempt,
  type ActivityResult,
  decodeArrayFromPayloads,
  workerRuntime,
} from '../temporal/sdk-internals.js';
import type { VirtualClock } from './clock.js';
import { type AttributesOf, NAMESPACE } from './events.js';

type Scheduled = AttributesOf<'activityTaskScheduled'>;
/** An activity function of the worker. */
export type ActivityFunction = NonNullable<ActivityAttempt['fn']>;

/** What executes the code of activities. */
export interface AttemptHost {
  readonly clock: VirtualClock;
  readonly functions: Readonly<Record<string, ActivityFunction>>;
  /** The client in the context of activities. */
  readonly client: () => Client;
  /** Called when code starts to run, and when it ends or waits. The clock is stopped in between. */
  readonly begin: () => void;
  readonly end: () => void;
  readonly attempts: Map<string, Attempt>;
}

/** A worker has died in a workflow task, which another worker repeats. */
export class TaskLostError extends Error {}

/** One attempt at an activity, which may still run after the server has given it up. */
export interface Attempt {
  readonly host: AttemptHost;
  readonly token: string;
  readonly execution: ActivityAttempt;
  /** The argument of the activity; undefined until it runs. */
  input: unknown;
  /** Whether its end no longer counts. */
  isOver: boolean;
  /** Whether its worker has died. */
  isLost: boolean;
  /** Whether it waits for another run. */
  isParked: boolean;
  /** Called with the details of each heartbeat. */
  readonly beat: (details: readonly Payload[]) => void;
}

/** The attempts by their contexts: another asynchronous storage would cost time in each promise. */
const byContext = new WeakMap<object, Attempt>();

/** An activity, by its name, its run, and its input. */
export interface CurrentActivity {
  readonly activity: string;
  /** The id of the run. */
  readonly run: string;
  readonly input: unknown;
  /** Lets the clock move while this code waits for something that comes from outside. */
  readonly wait: <T>(until: () => Promise<T>) => Promise<T>;
}

/** Returns the activity whose code calls this; null outside of activities. */
export function currentActivity(): CurrentActivity | null {
  const attempt = currentAttempt();
  if (attempt === undefined) return null;
  const { activityType, workflowExecution } = attempt.execution.context.info;
  return {
    activity: activityType,
    run: workflowExecution?.workflowId ?? '',
    input: attempt.input,
    wait: async (until) => await parked(attempt.host, until),
  };
}

/** Returns the attempt whose code calls this; undefined outside of activities. */
function currentAttempt(): Attempt | undefined {
  const context = asyncLocalStorage.getStore();
  return context === undefined ? undefined : byContext.get(context);
}

let tokens = 0;

/** Creates an attempt, whose code does not run yet. */
export function createAttempt(
  host: AttemptHost,
  known: Omit<Info, 'taskToken' | 'base64TaskToken'>,
  onBeat: Attempt['beat'],
): Attempt {
  const { Activity } = workerRuntime();
  const { activityType, workflowExecution, activityId, isLocal } = known;
  tokens += 1;
  const token = `attempt ${tokens}`;
  const taskToken = Buffer.from(token);
  const client = host.client();
  const attempt: Attempt = {
    host,
    token,
    execution: new Activity(
      { ...known, taskToken, base64TaskToken: taskToken.toString('base64') },
      host.functions[activityType],
      client.options.loadedDataConverter,
      { type: 'activity', namespace: NAMESPACE, activityId, ...workflowExecution, isLocal },
      undefined,
      (details?: unknown) => {
        if (attempt.isOver || attempt.isLost) return;
        onBeat(details === undefined ? [] : [defaultPayloadConverter.toPayload(details) ?? {}]);
      },
      client,
      // A failed attempt is in the history; the test prints what it wants to see.
      SILENT_LOGGER,
      noopMetricMeter,
      [],
    ),
    input: undefined,
    isOver: false,
    isLost: false,
    isParked: false,
    beat: onBeat,
  };
  host.attempts.set(token, attempt);
  byContext.set(attempt.execution.context, attempt);
  return attempt;
}

/** Runs the code of an attempt. Never rejects. */
export async function runAttempt(
  host: AttemptHost,
  attempt: Attempt,
  { input, header }: Pick<Scheduled, 'input' | 'header'>,
): Promise<ActivityResult> {
  host.begin();
  try {
    const { loadedDataConverter } = host.client().options;
    const args = await decodeArrayFromPayloads(loadedDataConverter, input?.payloads ?? []);
    [attempt.input] = args;
    const headers = header?.fields ?? {};
    return await attempt.execution.run({ args, headers });
  } finally {
    if (!attempt.isLost) release(host, attempt);
    host.attempts.delete(attempt.token);
  }
}

/** Drops an attempt, as when its worker dies. Its code may continue, but its result is ignored. */
export function loseAttempt(host: AttemptHost, attempt: Attempt): void {
  attempt.isLost = true;
  release(host, attempt);
}

/** Lets the clock move on. */
function release(host: AttemptHost, attempt: Attempt): void {
  if (!attempt.isParked) host.end();
  attempt.isParked = false;
}

/** The clock may move while an attempt waits for another run, as one that follows a called agent. */
export async function parked<T>(host: AttemptHost, wait: () => Promise<T>): Promise<T> {
  const attempt = currentAttempt();
  if (attempt === undefined || attempt.isParked || attempt.isLost) return await wait();
  attempt.isParked = true;
  host.end();
  try {
    return await wait();
  } finally {
    // A lost attempt was released already.
    if (attempt.isParked) {
      attempt.isParked = false;
      host.begin();
    }
  }
}

/** Whether the code that calls this runs in a worker that has died. */
export function isLost(): boolean {
  return currentAttempt()?.isLost === true;
}

/** Never resolves, as the code of a dead worker. */
export async function never<T>(): Promise<T> {
  return await new Promise<T>(() => undefined);
}
