/** A hundred years in milliseconds: the server takes no longer timer. */
export const MAX_DURABLE_MS = 100 * 365 * 24 * 60 * 60_000;

/** The units that durations are read in, from the largest, with their words. */
const UNITS = [
  { ms: 604_800_000, words: ['w', 'week', 'weeks'] },
  { ms: 86_400_000, words: ['d', 'day', 'days'] },
  { ms: 3_600_000, words: ['h', 'hr', 'hrs', 'hour', 'hours'] },
  { ms: 60_000, words: ['m', 'min', 'mins', 'minute', 'minutes'] },
  { ms: 1_000, words: ['s', 'sec', 'secs', 'second', 'seconds'] },
  { ms: 1, words: ['ms', 'millisecond', 'milliseconds'] },
] as const;

/** A duration: ms, or words such as '30 seconds', '2 days', '90 s', or '15m'. */
export type Duration = number | `${number}${'' | ' '}${(typeof UNITS)[number]['words'][number]}`;

/** A number with its unit, at the beginning of a text. */
const PART = /^(\d{1,20}(?:\.\d{1,20})?) ?([a-z]+) ?/;

/**
 * Returns the milliseconds of a duration as people write it: `30s`, `90 s`, `2 hours`,
 * `1 h 30 min`, `1.5d`, or `hour` for one of it. Null for any other text, and for more than a
 * hundred years.
 */
export function parseDuration(text: string): number | null {
  const given = text.trim().toLowerCase();
  const whole = unitOf(given);
  // A letter alone is more likely a mistake than one of a unit.
  if (whole !== undefined && given.length > 2) return whole.ms;
  let [rest, total, before] = [given, 0, Number.POSITIVE_INFINITY];
  do {
    const [part = '', count = '', word = ''] = PART.exec(rest) ?? [];
    const unit = unitOf(word);
    if (unit === undefined || unit.ms >= before) return null;
    rest = rest.slice(part.length);
    before = unit.ms;
    total += Number(count) * unit.ms;
  } while (rest !== '');
  const ms = Math.round(total);
  return ms <= MAX_DURABLE_MS ? ms : null;
}

function unitOf(word: string): (typeof UNITS)[number] | undefined {
  return UNITS.find(({ words }) => words.some((one) => one === word));
}

/** Returns the milliseconds of a `Duration`; `NaN` for any other text. */
export function toMs(duration: number | string): number {
  if (typeof duration === 'number') return duration;
  return parseDuration(duration) ?? Number.NaN;
}

/** The units that durations are shown in: seconds, the symbol, and the word if it stands alone. */
const SHOWN = [
  [86_400, 'd', 'day'],
  [3_600, 'h', 'hour'],
  [60, 'min', 'min'],
  [1, 's', 's'],
] as const;

/**
 * Formats milliseconds in at most two units: `0.4 s`, `2.0 s`, `90 s`, `2 min 5 s`, `1 hour`,
 * `36 hours`, `2 days`. `as`: `exact` for a time that a person has set (`20 ms`, `2 s`), `rounded`
 * for whole seconds and one unit (`2 min`); default: a time that was measured.
 */
export function formatDuration(
  ms: number,
  { as = 'measured' }: { readonly as?: 'measured' | 'exact' | 'rounded' } = {},
): string {
  const exact = Math.max(0, ms) / 1_000;
  if (as === 'measured' && exact < 9.95) return `${exact.toFixed(1)} s`;
  if (as === 'exact' && exact < 60 && !Number.isInteger(exact)) {
    return exact < 1 ? `${ms} ms` : `${exact} s`;
  }
  const seconds = Math.round(exact);
  // Less than two of a unit is shown in the smaller unit, unless it is exactly one.
  const at = SHOWN.findIndex(([size]) => seconds >= 2 * size || seconds === size || size === 1);
  const [[size, symbol, word] = SHOWN[3], smaller] = SHOWN.slice(at);
  const count = Math.floor(seconds / size);
  const rest = smaller === undefined ? 0 : Math.floor((seconds % size) / smaller[0]);
  if (as !== 'rounded' && smaller !== undefined && rest > 0) {
    return `${count} ${symbol} ${rest} ${smaller[1]}`;
  }
  return `${count} ${word === symbol || count === 1 ? word : `${word}s`}`;
}

/** Formats the time between two firings: `every hour`, `every 90 s`. */
export function formatInterval(ms: number): string {
  return `every ${formatDuration(ms, { as: 'exact' }).replace(/^1 (?=[a-z]{3})/, '')}`;
}
