import type { Context } from '@temporalio/activity';
import type { Json } from '../core/json.js';

/** Temporal Cloud bills each heartbeat that reaches the server, so short work sends none. */
const FIRST_SHARE = 2 / 3;
const NEXT_SHARE = 1 / 3;

/**
 * Runs work and sends heartbeats meanwhile, from two thirds of the heartbeat timeout on. Each heartbeat
 * carries what `details` returns at that moment. The heartbeats come from the main event loop on purpose:
 * a blocked loop is detected as a lost worker.
 */
export async function withHeartbeat<T>(
  context: Context,
  work: () => Promise<T>,
  details: () => Json | undefined = () => undefined,
): Promise<T> {
  const timeoutMs = context.info.heartbeatTimeoutMs;
  if (timeoutMs === undefined) return await work();
  let timer: NodeJS.Timeout | undefined;
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      context.heartbeat(details());
      schedule(timeoutMs * NEXT_SHARE);
    }, delayMs);
  };
  schedule(timeoutMs * FIRST_SHARE);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
