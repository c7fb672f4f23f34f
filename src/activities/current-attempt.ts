import type { Context } from '@temporalio/activity';

/** The assumed heartbeat timeout in ms for activities without one. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** A clock that is further behind the server's than this is wrong. */
const MAX_BEHIND_MS = 1_000;

/**
 * The most by which the server's clock was ahead of the monotonic clock when a task arrived, in ms:
 * a lower bound of the server's time, even if the clock of this machine is wrong or jumps.
 */
let serverAheadMs = -Infinity;

/**
 * Throws if the server has already abandoned this attempt. A worker that was frozen or disconnected
 * while it held the task must not execute a `once` tool again, or pay for a recorded reply again.
 * Only an attempt that starts late (half the heartbeat timeout after it was scheduled), or whose age
 * is unknown because this machine's clock is behind, asks the server, with one heartbeat without
 * details; the others cost nothing. A worker that freezes after this check cannot be stopped. Only
 * a destination that honors the idempotency key, or refuses an early `scheduledAt`, can distinguish
 * the two executions. Returns whether it asked the server.
 */
export async function assertCurrentAttempt({ info, client }: Context): Promise<boolean> {
  const lateMs = latenessOf(info.currentAttemptScheduledTimestampMs);
  if (lateMs < (info.heartbeatTimeoutMs ?? DEFAULT_TIMEOUT_MS) / 2) return false;
  try {
    await client.workflowService.recordActivityTaskHeartbeat({
      namespace: info.namespace,
      taskToken: info.taskToken,
    });
    return true;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const late = Number.isFinite(lateMs) ? `${Math.round(lateMs)} ms late` : 'at an unknown time';
    throw new Error(
      `the attempt started ${late}, and the server does not confirm that it still counts: ${why}`,
      { cause: error },
    );
  }
}

/**
 * Returns how long ago the server scheduled the attempt, at least; Infinity if that is unknown. The
 * time of day alone does not tell: on a machine whose clock is behind, no attempt would ever be
 * late. The monotonic clock alone does not either: it may stop while the machine sleeps.
 */
function latenessOf(scheduledAt: number): number {
  const byClock = Date.now() - scheduledAt;
  if (byClock < -MAX_BEHIND_MS && serverAheadMs === -Infinity) {
    serverAheadMs = scheduledAt - performance.now();
    return Infinity;
  }
  serverAheadMs = Math.max(serverAheadMs, scheduledAt - performance.now());
  return Math.max(byClock, performance.now() + serverAheadMs - scheduledAt);
}
