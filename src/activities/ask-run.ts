import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { askOrStartWorker } from '../updates/ask-or-start.js';
import { askWorker } from '../updates/control.js';
import { sha256Hex } from '../core/digest.js';
import type { AskReceipt } from '../core/inbox.js';
import type { SendMessageInput } from '../core/contract.js';

/** Shorter than an attempt of this activity, which Temporal retries when no answer comes. */
const WITHIN_MS = 30_000;
/** Ids of workflows may be longer than those of messages. */
const MAX_MESSAGE_ID_CHARACTERS = 200;

/** Gives a run a message under an id of its own, so that an attempt that is repeated does no harm. */
export async function askRun({ to, id, message, start }: SendMessageInput): Promise<AskReceipt> {
  const { client, info } = Context.current();
  const ask = { message, id: id.length > MAX_MESSAGE_ID_CHARACTERS ? sha256Hex(id) : id };
  try {
    const { turn, duplicate } = await (start === undefined
      ? askWorker(client, to, ask, { withinMs: WITHIN_MS })
      : askOrStartWorker(client, ask, {
          id: to,
          taskQueue: info.taskQueue,
          input: start,
          withinMs: WITHIN_MS,
        }));
    return { turn, ...(duplicate && { duplicate }) };
  } catch (error) {
    throw undelivered(error);
  }
}

/** A run that is over, or that there never was, does not come back; all else may pass. */
function undelivered(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { cause } = error;
  const final =
    cause instanceof WorkflowNotFoundError || cause instanceof WorkflowExecutionAlreadyStartedError;
  return ApplicationFailure.create({
    type: 'Undelivered',
    message: error.message,
    nonRetryable: final,
  });
}
