import { randomUUID } from 'node:crypto';
import {
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  type Client,
} from '@temporalio/client';
import { askProblem } from '../core/ask.js';
import type { Ask } from '../core/inbox.js';
import type { RunInput } from '../core/input.js';
import { visible } from '../core/summaries.js';
import { askUpdate } from '../workflows/handles.js';
import { answered, UndecidedError } from './answered.js';
import type { SentMessage } from './control.js';
import { summaryOf } from './start.js';

export interface AskOrStartOptions {
  readonly id: string;
  readonly taskQueue: string;
  /** What the run is started with where there is none of this id; without a message of its own. */
  readonly input: RunInput;
}

/**
 * Gives a run a message and starts the run where there is none, in one call. The same message id
 * again is the same message. A run that has ended is never started afresh by it. Needs a worker.
 * Rejects with an `UndecidedError`.
 */
export async function askOrStart(
  client: Client,
  ask: Ask,
  { id, taskQueue, input }: AskOrStartOptions,
): Promise<SentMessage> {
  // The workflow would refuse it too, but it would have been started by then.
  const problem = askProblem(ask);
  if (problem !== null) throw new UndecidedError(problem);
  const { id: messageId = randomUUID(), message } = ask;
  const send = async () => {
    const startWorkflowOperation = new WithStartWorkflowOperation('agent', {
      workflowId: id,
      taskQueue,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      staticSummary: summaryOf({ agent: input.agent, message }),
    });
    return await client.workflow.executeUpdateWithStart(askUpdate, {
      startWorkflowOperation,
      args: [{ ...ask, id: messageId }],
      updateId: messageId,
    });
  };
  try {
    return { ...(await answered(client, id, send)), messageId };
  } catch (error) {
    if (!hasEnded(error)) throw error;
    throw new UndecidedError(
      `run ${visible(id)} has ended: it takes no more messages, and its id is not used again; ` +
        'send to another id',
      { cause: error.cause },
    );
  }
}

function hasEnded(error: unknown): error is UndecidedError {
  return (
    error instanceof UndecidedError && error.cause instanceof WorkflowExecutionAlreadyStartedError
  );
}
