import type { Context } from '@temporalio/activity';

/** The assumed heartbeat timeout in ms for activities without one. */
const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Throws if the server has already abandoned this attempt. A worker that was frozen or disconnected
 * while it held the task must not execute a `once` tool again, or pay for a recorded reply again.
 * Only an attempt that starts late (half the heartbeat timeout after it was scheduled) asks the
 * server, with one heartbeat without details; the others cost nothing. A worker that freezes after
 * this check cannot be stopped. Only a destination that honors the idempotency key, or refuses an
 * early `scheduledAt`, can distinguish the two executions. Returns whether it asked the server.
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
