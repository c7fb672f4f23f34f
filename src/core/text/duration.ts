/** Formats milliseconds: `0.4 s`, `12 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** A hundred years in milliseconds: the server takes no longer timer. */
export const MAX_DURABLE_MS = 100 * 365 * 24 * 60 * 60_000;

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * Returns the milliseconds of a duration such as `30s`, `5m`, `2h`, `3d`, or `1w`; null for any
 * other text, and for more than a hundred years.
 */
export function parseDuration(text: string): number | null {
  const [, count, unit = ''] = /^(\d+)([smhdw])$/.exec(text) ?? [];
  const ms = Number(count) * (UNIT_MS[unit] ?? Number.NaN);
  return ms <= MAX_DURABLE_MS ? ms : null;
}

/** A duration: ms, or words such as '30 seconds' or '2 days'. */
export type Duration =
  | number
  | `${number} ${'second' | 'minute' | 'hour' | 'day' | 'week'}${'' | 's'}`;

const WORDS: Readonly<Record<string, string>> = {
  second: 's',
  minute: 'm',
  hour: 'h',
  day: 'd',
  week: 'w',
};

/** Returns the milliseconds of a `Duration`; `NaN` for any other text. */
export function toMs(duration: number | string): number {
  if (typeof duration === 'number') return duration;
  const [, count, word = ''] = /^(\d+(?:\.\d+)?) ([a-z]+?)s?$/.exec(duration) ?? [];
  return Math.round(Number(count) * (UNIT_MS[WORDS[word] ?? ''] ?? Number.NaN));
}
