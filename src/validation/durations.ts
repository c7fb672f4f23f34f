import { z } from 'zod';
import { MAX_DURABLE_MS, toMs } from '../core/text/duration.js';

/** The longest timer of Node in milliseconds, about 24 days; a longer one fires at once. */
export const MAX_NODE_TIMER_MS = 2_147_483_647;

/**
 * Returns the schema of an option that takes a `Duration` of whole milliseconds within a range. It
 * parses to milliseconds. `minMs` is 1 by default; `range` says the range in words.
 */
export function duration({
  minMs = 1,
  maxMs,
  range,
}: {
  readonly minMs?: number;
  readonly maxMs: number;
  readonly range: string;
}): z.ZodType<number> {
  const expected = `expected a whole number of ms or words such as "30 seconds" or "2 days"; ${range}`;
  return z.union([z.number(), z.string()], expected).transform((given, context) => {
    const ms = toMs(given);
    if (Number.isInteger(ms) && ms >= minMs && ms <= maxMs) return ms;
    context.addIssue({ code: 'custom', message: expected });
    return z.NEVER;
  });
}

/** A duration that a timer of the worker measures. */
export const timerDuration = timerDurationFrom(1);

/** Returns the schema of such a duration of at least `minMs`; `least` is the minimum in words. */
export function timerDurationFrom(minMs: number, least?: string): z.ZodType<number> {
  const from = least === undefined ? '' : `at least ${least}, `;
  return duration({ minMs, maxMs: MAX_NODE_TIMER_MS, range: `${from}at most 24 days` });
}

/** A duration that a run measures, and not a timer of the worker: a server takes no longer timer. */
export const durableDuration = duration({ maxMs: MAX_DURABLE_MS, range: 'at most 100 years' });
