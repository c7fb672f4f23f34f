import type { Context } from '@temporalio/activity';
import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
} from '@temporalio/client';
import { retryFailure } from '../failures.js';
import { toDetails, type AttemptMemory } from './attempt-memory.js';

/** A server that does not answer within this time has lost the heartbeat. */
const HANDOVER_MS = 5_000;

/**
 * Sends the memory to the server, so that the next attempt has it even if this process freezes or is killed now.
 * Resolves when the server has it: the SDK holds back all but the first heartbeat, for up to 80 % of the
 * heartbeat timeout. Rejects if the server has given this attempt up. A server that cannot be reached gets the
 * memory with the next heartbeat.
 */
export async function handOver(context: Context, memory: AttemptMemory): Promise<void> {
  const { client, info, log } = context;
  const details = toDetails(memory);
  // A heartbeat that is held back would replace these details by older ones.
  context.heartbeat(details);
  try {
    await client.withDeadline(
      Date.now() + HANDOVER_MS,
      async () => await client.activity.heartbeat(info.taskToken, details),
    );
  } catch (error) {
    if (error instanceof ActivityNotFoundError) {
      throw retryFailure('the server has given this attempt up');
    }
    // The SDK learns of it too, and aborts the signal.
    if (isInterruption(error)) return;
    log.warn('the server has not confirmed a reply that was paid for', { error });
  }
}

function isInterruption(error: unknown): boolean {
  return (
    error instanceof ActivityCancelledError ||
    error instanceof ActivityPausedError ||
    error instanceof ActivityResetError
  );
}
