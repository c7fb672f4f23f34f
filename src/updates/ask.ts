import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Client,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/client';
import { InputError, RefusedError } from '../core/errors.js';
import { type Ask, type AskReceipt, otherMessageProblem } from '../core/input/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { givenMessageProblem } from '../core/input/named-prompt.js';
import { ASK_FIELDS, askProblem } from '../core/run/ask.js';
import { visible } from '../core/state/summaries.js';
import { wellFormedJson } from '../core/text/json.js';
import { askUpdate, messageSignal } from '../workflows/messages/definitions.js';
import {
  type UpdateOptions,
  type UpdateTarget,
  checkForWorker,
  executeUpdate,
  findTaskQueue,
} from './execute-update.js';
import { type GivenNames, hashedId } from '../temporal/stored-ids.js';
import { assertTenantId } from '../temporal/tenant-rules.js';
import { assertRunId, runSummary, sharedBy } from './start.js';

/** A message that the run has received. */
export interface DeliveredMessage extends Omit<AskReceipt, 'digest'> {
  readonly delivered: true;
  /** The id of the message. Repeating the message with the same id has no further effect. */
  readonly messageId: string;
}

/**
 * A message that the server has recorded because there was no worker. It survives a crash of the
 * server, and the next worker delivers it. If the run then refuses it, the run's status shows that.
 */
export interface RecordedMessage {
  readonly delivered: false;
  readonly messageId: string;
}

/**
 * A message that was sent. `delivered` is whether the run already has it. `duplicate` is set by the
 * run; a repeat within the same segment gets the first answer from the server, without `duplicate`.
 */
export type SentMessage = DeliveredMessage | RecordedMessage;

/** When to check for a worker first; with one, an answer takes milliseconds. */
const FIRST_CHECK_MS = 1_000;
const CHECK_EVERY_MS = 3_000;

/**
 * Delivers a message to a run. If there is no answer and no worker polls the run's task queue, the
 * message is recorded as a signal under the same id: the server loses a pending update when it
 * crashes, but not a signal. Resolves with whichever comes first; the run accepts the message only
 * once.
 */
async function deliverOrRecord(
  client: Client,
  target: UpdateTarget & { readonly messageId: string },
  how: {
    readonly deliver: (signal: AbortSignal) => Promise<DeliveredMessage>;
    readonly record: () => Promise<unknown>;
  },
): Promise<SentMessage> {
  const over = new AbortController();
  const delivery = how.deliver(over.signal);
  try {
    return await Promise.race([
      delivery,
      recordIfNoWorker(client, target, { ...how, signal: over.signal }),
    ]);
  } finally {
    over.abort();
    delivery.catch(() => undefined);
  }
}

/** Resolves only when the message is recorded; the update reports any failure. */
async function recordIfNoWorker(
  client: Client,
  target: UpdateTarget & { readonly messageId: string },
  { record, signal }: { readonly record: () => Promise<unknown>; readonly signal: AbortSignal },
): Promise<RecordedMessage> {
  for (let waitMs = FIRST_CHECK_MS; ; waitMs = CHECK_EVERY_MS) {
    if (!(await wait(waitMs, signal))) return await new Promise<never>(() => undefined);
    const queue = await findTaskQueue(client, target);
    if (queue === null || (await checkForWorker(client, queue)) !== 'missing') continue;
    const isRecorded = await record().then(
      () => true,
      () => false,
    );
    if (isRecorded) return { delivered: false, messageId: target.messageId };
  }
}

/** Resolves with false if the signal aborts first. */
async function wait(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}

/**
 * Sends a message to a run. Resolves when the run has received the message, not when it has
 * answered it. The message is neither lost nor duplicated if the run continues in a new segment or
 * a worker freezes: every try uses the same id, which is generated if the message has none. Without
 * a worker, the server records the message for a later one. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
export async function askRun(
  client: Client,
  id: string,
  ask: Ask,
  options: UpdateOptions = {},
): Promise<SentMessage> {
  const named = withId(ask);
  const target = { id, messageId: named.id };
  return await deliverOrRecord(client, target, {
    deliver: (over) =>
      askWorker(client, id, named, { ...options, signal: anySignal(over, options) }),
    record: () => recordMessage(client, id, named),
  });
}

/**
 * Does the same, but waits for a worker and never records. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
export async function askWorker(
  client: Client,
  id: string,
  ask: Ask,
  options: UpdateOptions = {},
): Promise<DeliveredMessage> {
  const named = withId(ask);
  const { id: messageId } = named;
  const update = { args: [named] as [Ask], updateId: hashedId(client, 'message', messageId) };
  const handle = client.workflow.getHandle(id);
  const send = () => handle.executeUpdate(askUpdate, update);
  const receipt = await executeUpdate(client, { id, messageId }, send, options);
  return delivered(named, receipt);
}

/** Returns a message that has arrived. Throws an `InputError` if another one had its id. */
function delivered(
  ask: Ask & { readonly id: string },
  { digest, ...receipt }: AskReceipt,
): DeliveredMessage {
  const problem = otherMessageProblem(ask, digest);
  if (problem !== null) throw new InputError(problem);
  return { ...receipt, delivered: true, messageId: ask.id };
}

/** Lets the server record a message for a later worker. Rejects if there is no such open run. */
export async function recordMessage(
  client: Client,
  id: string,
  ask: Ask & { readonly id: string },
): Promise<void> {
  await client.workflow.getHandle(id).signal(messageSignal, ask);
}

/**
 * Returns the message with an id, generated if it has none, and without half surrogate pairs. Throws an `InputError` if it is
 * invalid.
 */
export function withId(ask: Ask): Ask & { readonly id: string } {
  const problem = givenMessageProblem({ ...ask }, ASK_FIELDS) ?? askProblem(ask);
  if (problem !== null) throw new InputError(problem);
  return wellFormedJson({ ...ask, id: ask.id ?? randomUUID() });
}

/** Returns a signal that aborts with the first of the two. */
function anySignal(over: AbortSignal, { signal }: UpdateOptions): AbortSignal {
  return signal === undefined ? over : AbortSignal.any([over, signal]);
}

interface AskOrStartOptions extends UpdateOptions, Pick<GivenNames, 'givenId'> {
  readonly id: string;
  readonly taskQueue: string;
  /** The input of the run if it is started, without a message of its own. */
  readonly input: RunInput;
}

/**
 * Sends a message to a run, and starts the run if there is none, in one call. Repeating it with the
 * same message id has no further effect. A run that has ended is never started again. Without a
 * worker, the server records the message and the start for a later worker. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function askOrStart(
  client: Client,
  ask: Ask,
  options: AskOrStartOptions,
): Promise<SentMessage> {
  const named = withId(ask);
  const { id, taskQueue } = options;
  const target = { id, taskQueue, messageId: named.id };
  return await deliverOrRecord(client, target, {
    deliver: (over) =>
      askOrStartWorker(client, named, { ...options, signal: anySignal(over, options) }),
    record: () =>
      client.workflow.signalWithStart('agent', {
        ...startOptions(client, named, options),
        signal: messageSignal,
        signalArgs: [named],
      }),
  });
}

/**
 * Does the same, but waits for a worker and never records. Rejects with a `RefusedError` or a
 * `NotDeliveredError`.
 */
export async function askOrStartWorker(
  client: Client,
  ask: Ask,
  options: AskOrStartOptions,
): Promise<DeliveredMessage> {
  // The workflow would also refuse an invalid message, but only after it was started.
  const named = withId(ask);
  const { id: messageId } = named;
  const { id, taskQueue, input } = options;
  assertRunId(id);
  assertTenantId(client, { id, tenant: input.tenant });
  const send = async () =>
    await client.workflow.executeUpdateWithStart(askUpdate, {
      startWorkflowOperation: new WithStartWorkflowOperation('agent', {
        ...startOptions(client, named, options),
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
      args: [named],
      updateId: hashedId(client, 'message', messageId),
    });
  try {
    const receipt = await executeUpdate(client, { id, taskQueue, messageId }, send, options);
    return delivered(named, receipt);
  } catch (error) {
    if (!hasEnded(error)) throw error;
    throw new RefusedError(
      `run ${visible(id)} has ended: it accepts no more messages, and its id is not reused; ` +
        'send to another id',
      { cause: error.cause, reason: 'run_ended' },
    );
  }
}

function startOptions(
  client: Client,
  { message, prompt }: Ask,
  { id, givenId, taskQueue, input: given }: AskOrStartOptions,
) {
  const { input, shares } = sharedBy(client, given, { ...(givenId !== undefined && { givenId }) });
  return {
    workflowId: id,
    taskQueue,
    args: [input],
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    ...shares,
    staticSummary: runSummary({
      agent: input.agent,
      ...(message !== undefined && { message }),
      ...(prompt !== undefined && { prompt }),
    }),
  } as const;
}

function hasEnded(error: unknown): error is RefusedError {
  return (
    error instanceof RefusedError && error.cause instanceof WorkflowExecutionAlreadyStartedError
  );
}
