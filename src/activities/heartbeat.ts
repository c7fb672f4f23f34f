import type { Context } from '@temporalio/activity';
import type { Json } from '../core/json.js';

/** Each heartbeat that reaches the server is billed on Temporal Cloud: short work sends none. */
const FIRST_SHARE = 2 / 3;
const NEXT_SHARE = 1 / 3;

/**
 * Runs work while telling the server that it is alive, from two thirds of the heartbeat timeout on.
 * The beats come from the main loop on purpose: a blocked loop is detected as a lost worker.
 */
export async function withHeartbeat<T>(
  context: Context,
  details: () => Json | undefined,
  work: () => Promise<T>,
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
