import type { Context } from '@temporalio/activity';
import type { Json } from '../core/json.js';

/**
 * Share of the timeout before the first heartbeat. Temporal Cloud bills each one, so short work
 * sends none.
 */
const FIRST_SHARE = 2 / 3;
const NEXT_SHARE = 1 / 3;

/**
 * Sends heartbeats from two thirds of the heartbeat timeout on, until the returned function is called. Each
 * carries what `details` returns at that moment. The heartbeats come from the main event loop on purpose:
 * a blocked loop is detected as a lost worker.
 */
export function startHeartbeat(
  context: Context,
  details: () => Json | undefined = () => undefined,
): () => void {
  const timeoutMs = context.info.heartbeatTimeoutMs;
  if (timeoutMs === undefined) return () => undefined;
  let timer: NodeJS.Timeout | undefined;
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      context.heartbeat(details());
      schedule(timeoutMs * NEXT_SHARE);
    }, delayMs);
  };
  schedule(timeoutMs * FIRST_SHARE);
  return () => clearTimeout(timer);
}

/** Runs work with heartbeats, whose details are those of `startHeartbeat`. */
export async function withHeartbeat<T>(
  context: Context,
  work: () => Promise<T>,
  details?: () => Json | undefined,
): Promise<T> {
  const stopHeartbeat = startHeartbeat(context, details);
  try {
    return await work();
  } finally {
    stopHeartbeat();
  }
}
