import {
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  type Client,
} from '@temporalio/client';
import type { Ask } from '../core/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { visible } from '../core/text/summaries.js';
import { askUpdate, messageSignal } from '../workflows/messages.js';
import { executeUpdate, type UpdateOptions } from './execute-update.js';
import { deliverOrRecord, type SentMessage, type DeliveredMessage } from './deliver-or-record.js';
import { either, withId } from './control.js';
import { runSummary } from './start.js';
import { RefusedError } from '../core/errors.js';

export interface AskOrStartOptions extends UpdateOptions {
  readonly id: string;
  readonly taskQueue: string;
  /** What the run is started with where there is none of this id; without a message of its own. */
  readonly input: RunInput;
}

/**
 * Gives a run a message and starts the run where there is none, in one call. The same message id
 * again is the same message. A run that has ended is never started afresh by it. Where no worker is
 * there, the message, and the start with it, is recorded for one that comes. Rejects with a
 * `RefusedError` or a `NotDeliveredError`.
 */
export async function askOrStart(
  client: Client,
  ask: Ask,
  options: AskOrStartOptions,
): Promise<SentMessage> {
  const named = withId(ask);
  const { id, taskQueue } = options;
  const told = { id, taskQueue, messageId: named.id };
  return await deliverOrRecord(client, told, {
    take: (over) => askOrStartWorker(client, named, { ...options, signal: either(over, options) }),
    record: () =>
      client.workflow.signalWithStart('agent', {
        ...startOf(named, options),
        signal: messageSignal,
        signalArgs: [named],
      }),
  });
}

/** The same, where only a worker's answer counts. Rejects with a `RefusedError` or a `NotDeliveredError`. */
export async function askOrStartWorker(
  client: Client,
  ask: Ask,
  options: AskOrStartOptions,
): Promise<DeliveredMessage> {
  // The workflow would refuse it too, but it would have been started by then.
  const named = withId(ask);
  const { id: messageId } = named;
  const { id, taskQueue } = options;
  const send = async () =>
    await client.workflow.executeUpdateWithStart(askUpdate, {
      startWorkflowOperation: new WithStartWorkflowOperation('agent', {
        ...startOf(named, options),
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
      `run ${visible(id)} has ended: it takes no more messages, and its id is not used again; ` +
        'send to another id',
      { cause: error.cause },
    );
  }
}

function startOf({ message }: Ask, { id, taskQueue, input }: AskOrStartOptions) {
  return {
    workflowId: id,
    taskQueue,
    args: [input],
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    staticSummary: runSummary({ agent: input.agent, message }),
  } as const;
}

function hasEnded(error: unknown): error is RefusedError {
  return (
    error instanceof RefusedError && error.cause instanceof WorkflowExecutionAlreadyStartedError
  );
}
