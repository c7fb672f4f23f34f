import type { Context } from '@temporalio/activity';

/** The heartbeat timeout that counts for activities without one, in ms. */
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Throws if the server has already given this attempt up, so that a worker that was frozen or cut off with
 * the task in its hands does not execute a `once` tool again, or pay for a recorded reply again. Only an
 * attempt that starts late (half the heartbeat timeout after it was scheduled) asks the server, with one
 * heartbeat without details; the others cost nothing. A worker that freezes after this check is beyond
 * reach: only a destination that honors the idempotency key, or refuses an early `scheduledAt`, can tell
 * the two executions apart. Returns whether it has asked.
 */
export async function assertCurrentAttempt({ info, client }: Context): Promise<boolean> {
  const lateMs = Date.now() - info.currentAttemptScheduledTimestampMs;
  if (lateMs < (info.heartbeatTimeoutMs ?? DEFAULT_TIMEOUT_MS) / 2) return false;
  try {
    await client.workflowService.recordActivityTaskHeartbeat({
      namespace: info.namespace,
      taskToken: info.taskToken,
    });
    return true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `the attempt started ${lateMs} ms late, and the server does not confirm that it still counts: ${why}`,
      { cause: error },
    );
  }
}
