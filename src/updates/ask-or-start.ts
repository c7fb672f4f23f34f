import {
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  type Client,
} from '@temporalio/client';
import type { Ask } from '../core/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { visible } from '../core/text/summaries.js';
import { askUpdate, messageSignal } from '../workflows/messages/definitions.js';
import { executeUpdate, type UpdateOptions } from './execute-update.js';
import { deliverOrRecord, type SentMessage, type DeliveredMessage } from './deliver-or-record.js';
import { anySignal, withId } from './ask-run.js';
import { assertRunId, runSummary } from './start.js';
import { RefusedError } from '../core/errors.js';

export interface AskOrStartOptions extends UpdateOptions {
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
        ...startOptions(named, options),
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
  const { id, taskQueue } = options;
  assertRunId(id);
  const send = async () =>
    await client.workflow.executeUpdateWithStart(askUpdate, {
      startWorkflowOperation: new WithStartWorkflowOperation('agent', {
        ...startOptions(named, options),
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
      args: [named],
      updateId: messageId,
    });
  try {
    const receipt = await executeUpdate(client, { id, taskQueue, messageId }, send, options);
    return { ...receipt, delivered: true, messageId };
  } catch (error) {
    if (!hasEnded(error)) throw error;
    throw new RefusedError(
      `run ${visible(id)} has ended: it accepts no more messages, and its id is not reused; ` +
        'send to another id',
      { cause: error.cause },
    );
  }
}

function startOptions({ message, prompt }: Ask, { id, taskQueue, input }: AskOrStartOptions) {
  return {
    workflowId: id,
    taskQueue,
    args: [input],
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
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
