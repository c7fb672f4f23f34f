import type { Context } from '@temporalio/activity';
import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
} from '@temporalio/client';
import { retryFailure } from '../failures.js';
import { toDetails, type AttemptMemory } from './attempt-memory.js';

/** Timeout in ms after which the heartbeat is considered lost. */
const HANDOVER_MS = 5_000;

/**
 * Sends the memory to the server, so the next attempt has it even if this process freezes or is
 * killed now. Resolves when the server has it: the SDK delays all but the first heartbeat for up to
 * 80 % of the heartbeat timeout. Rejects if the server has abandoned this attempt. An unreachable
 * server gets the memory with the next heartbeat.
 */
export async function handOver(context: Context, memory: AttemptMemory): Promise<void> {
  const { client, info, log } = context;
  const details = toDetails(memory);
  // A delayed heartbeat would replace these details with older ones.
  context.heartbeat(details);
  try {
    await client.withDeadline(
      Date.now() + HANDOVER_MS,
      async () => await client.activity.heartbeat(info.taskToken, details),
    );
  } catch (error) {
    if (error instanceof ActivityNotFoundError) {
      throw retryFailure('the server has abandoned this attempt');
    }
    // The SDK also learns of it and aborts the signal.
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
