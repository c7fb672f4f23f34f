import { setTimeout as pause } from 'node:timers/promises';
import {
  isGrpcServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { visible } from '../core/summaries.js';

/** For each try. A worker was there a moment ago, so this is long. */
const ANSWER_WITHIN_MS = 10_000;
/** So long a run may be on its way into a new segment, or have no slot for a further update. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 100;
/** A try in less time would only hide why the ones before it failed. */
const SHORTEST_TRY_MS = 1_000;
/** Codes of gRPC: resource exhausted, failed precondition, aborted, unavailable. */
const PASSING: readonly number[] = [8, 9, 10, 14];
/** The server's own words for updates that a segment left behind when it ended. */
const LEFT_BEHIND = ['AcceptedUpdateCompletedWorkflow', 'UnprocessedUpdate'];

/** What was said to a run did not get through; the message says why. */
export class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
  /** Nobody answered, so it may have been taken all the same. */
  readonly isUncertain: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isUncertain?: boolean } = {}) {
    super(message, options);
    this.isUncertain = options.isUncertain ?? false;
  }
}

/**
 * Makes an update and waits for its answer, again and again where the run merely went on in a new
 * segment meanwhile or has no room at this moment. So `update` has to be one that does no harm
 * when it is taken twice. Needs a worker. Rejects with an `UndecidedError`.
 */
export async function answered<T>(
  client: Client,
  id: string,
  update: () => Promise<T>,
): Promise<T> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const within = Math.min(Date.now() + ANSWER_WITHIN_MS, giveUpAt);
    try {
      return await client.withDeadline(within, update);
    } catch (error) {
      const later = Date.now() + PAUSE_MS + SHORTEST_TRY_MS < giveUpAt;
      if (!later || !(await mayPass(client, id, error))) {
        const isUncertain = error instanceof WorkflowUpdateRPCTimeoutOrCancelledError;
        throw new UndecidedError(reasonOf(error, id), { cause: error, isUncertain });
      }
    }
    await pause(PAUSE_MS);
  }
}

async function mayPass(client: Client, id: string, error: unknown): Promise<boolean> {
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    return cause instanceof ApplicationFailure && LEFT_BEHIND.includes(cause.type ?? '');
  }
  // A segment that has just been left is not found; the run itself may live on.
  if (error instanceof WorkflowNotFoundError) return await lives(client, id);
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code: number | null = isGrpcServiceError(cause) ? cause.code : null;
  return code !== null && PASSING.includes(code);
}

async function lives(client: Client, id: string): Promise<boolean> {
  try {
    const { status } = await client.workflow.getHandle(id).describe();
    return status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW';
  } catch {
    return false;
  }
}

function reasonOf(error: unknown, id: string): string {
  // The run's own words are in the cause.
  if (error instanceof WorkflowUpdateFailedError) return error.cause?.message ?? error.message;
  if (error instanceof WorkflowNotFoundError) return `run ${visible(id)} has ended, or never was`;
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) {
    const seconds = ANSWER_WITHIN_MS / 1_000;
    return `no answer within ${seconds} s; see in the run's status whether it was taken`;
  }
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return isGrpcServiceError(cause) ? `${error.message}: ${cause.details}` : error.message;
}
