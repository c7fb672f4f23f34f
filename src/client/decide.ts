import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client';
import type { Resolution } from '../core/call-results.js';
import { resolveUpdate, resumeUpdate } from '../workflows/handles.js';

/** A worker was there a moment ago, so this is long. */
const ANSWER_WITHIN_MS = 10_000;

/** A decision did not get through; the message says why. */
export class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** Settles a call whose outcome is unknown. Needs a worker. Rejects with an `UndecidedError`. */
export async function resolveCall(
  client: Client,
  id: string,
  resolution: Resolution,
): Promise<void> {
  const handle = client.workflow.getHandle(id);
  await answered(client, () => handle.executeUpdate(resolveUpdate, { args: [resolution] }));
}

/** Lets a blocked run try again at once. Needs a worker. Rejects with an `UndecidedError`. */
export async function resumeRun(client: Client, id: string): Promise<void> {
  const handle = client.workflow.getHandle(id);
  await answered(client, () => handle.executeUpdate(resumeUpdate));
}

async function answered(client: Client, update: () => Promise<unknown>): Promise<void> {
  try {
    await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, update);
  } catch (error) {
    throw new UndecidedError(reasonOf(error), { cause: error });
  }
}

function reasonOf(error: unknown): string {
  // The run's own words are in the cause.
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? error.message;
  if (error instanceof WorkflowNotFoundError) return 'the run has ended in the meantime';
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
    const seconds = ANSWER_WITHIN_MS / 1_000;
    return `no answer within ${seconds} s; see in the run's status whether it was taken`;
  }
  return error instanceof Error ? error.message : String(error);
}
