/** The longest wait that a provider can impose. */
export const LONGEST_WAIT_MS = 600_000;

const NUMBER = /^\d+(\.\d+)?$/;
/** As HTTP writes it, and ISO 8601; `Date.parse` alone would read a date into nearly any text. */
const DATE = /GMT$|^\d{4}-\d{2}-\d{2}T/;

function untilDate(text: string, headers: Headers, now: number): number | undefined {
  const until = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  // The provider's own clock, where it tells it: ours may be minutes off.
  const sent = Date.parse(headers.get('date') ?? '');
  return Math.max(0, until - (Number.isNaN(sent) ? now : sent));
}

function askedMs(headers: Headers, now: number): number | undefined {
  const milliseconds = headers.get('retry-after-ms')?.trim() ?? '';
  if (NUMBER.test(milliseconds)) return Number(milliseconds);
  const text = headers.get('retry-after')?.trim() ?? '';
  return NUMBER.test(text) ? Number(text) * 1000 : untilDate(text, headers, now);
}

/**
 * Milliseconds the provider asks to wait, at most `LONGEST_WAIT_MS`: `retry-after-ms`, else
 * `retry-after` in seconds or as a date. Undefined when it says nothing that can be read.
 */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const asked = askedMs(headers, now);
  return asked === undefined ? undefined : Math.min(Math.ceil(asked), LONGEST_WAIT_MS);
}
