import { show } from '../text/format-value.js';

/** Returns what is wrong with `unattended` in an input, or null. */
export function checkUnattended(value: unknown): string | null {
  if (value === undefined || value === 'deny') return null;
  return `unattended: expected "deny", got ${show(value)}; leave it out if people can decide`;
}
