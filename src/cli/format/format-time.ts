const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** A span for people, in its largest unit: `12 s`, `5 min`, `3 h`, `2 d`. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  // Up to two of a unit are told in the smaller one: `90 s`, `36 h`.
  const unit = UNITS.find(([, size]) => seconds >= 2 * size);
  return unit === undefined ? `${seconds} s` : `${Math.floor(seconds / unit[1])} ${unit[0]}`;
}

/** `5 min ago`. */
export function formatAgo(at: number, now: number): string {
  return `${formatSpan(now - at)} ago`;
}

/** `2026-11-21 14:03:12`, by the clock of this machine. */
export function formatDateTime(at: number): string {
  const date = new Date(at);
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${formatTime(at)}`;
}

/** `14:03:12`, by the clock of this machine. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}
