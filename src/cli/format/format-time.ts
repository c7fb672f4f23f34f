import { formatDuration } from '../../core/text/duration.js';

/** Formats a span of milliseconds in its largest unit: `12 s`, `5 min`, `3 hours`, `2 days`. */
export function formatSpan(ms: number): string {
  return formatDuration(ms, { as: 'rounded' });
}

/** Formats how long ago a time was: `5 min ago`. Both arguments are Unix times in ms. */
export function formatAgo(at: number, now: number): string {
  return `${formatSpan(now - at)} ago`;
}

/** Formats a Unix time in ms in the local time zone: `2026-11-21 14:03:12`. */
export function formatDateTime(at: number): string {
  const date = new Date(at);
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  return `${parts.map(twoDigits).join('-')} ${formatTime(at)}`;
}

/** Formats the time of day of a Unix time in ms in the local time zone: `14:03:12`. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':');
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
