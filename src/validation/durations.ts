import { z } from 'zod';
import { MAX_DURABLE_MS, toMs } from '../core/text/duration.js';

/** The longest timer of Node in milliseconds, about 24 days; a longer one fires at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

const EXPECTED_MS = `expected a positive number of milliseconds, at most ${LONGEST_TIMER_MS} (24 days)`;

/** An option whose name ends with `Ms`: a number of milliseconds that a timer can measure. */
export const milliseconds = z
  .number(EXPECTED_MS)
  .positive(EXPECTED_MS)
  .max(LONGEST_TIMER_MS, EXPECTED_MS);

/**
 * Returns the schema of an option that takes a `Duration` of at least 1 ms and at most `maxMs`. It parses
 * to milliseconds. `most` is the maximum in words.
 */
export function duration(maxMs: number, most: string): z.ZodType<number> {
  const expected = `expected a whole number of ms or words such as "30 seconds" or "2 days"; at most ${most}`;
  return z.union([z.number(), z.string()], expected).transform((given, context) => {
    const ms = toMs(given);
    if (Number.isInteger(ms) && ms >= 1 && ms <= maxMs) return ms;
    context.addIssue({ code: 'custom', message: expected });
    return z.NEVER;
  });
}

/** A duration that a timer of the worker measures. */
export const timerDuration = duration(LONGEST_TIMER_MS, '24 days');

/** A duration that a run measures, and not a timer of the worker: a server takes no longer timer. */
export const durableDuration = duration(MAX_DURABLE_MS, '100 years');
