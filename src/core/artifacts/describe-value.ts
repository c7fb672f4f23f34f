import { isObject, type Json } from '../json.js';

const KEYS = 12;

/** Describes a value in one line, such as `array of 300 objects, the first with keys id, euros`. */
export function describeValue(value: Json): string {
  if (typeof value === 'string') return `text of ${value.length} characters`;
  if (Array.isArray(value)) {
    const [first] = value as readonly Json[];
    const items = isObject(first) ? ` objects, the first with keys ${keysOf(first)}` : '';
    return `array of ${value.length}${items}`;
  }
  if (isObject(value)) {
    const keys = keysOf(value);
    return keys === '' ? 'empty object' : `object with keys ${keys}`;
  }
  return value === null ? 'null' : `${typeof value} ${JSON.stringify(value)}`;
}

function keysOf(value: object): string {
  const keys = Object.keys(value);
  const shown = keys.slice(0, KEYS).map((key) => printable(key));
  return keys.length > KEYS
    ? `${shown.join(', ')} and ${keys.length - KEYS} more`
    : shown.join(', ');
}

/**
 * Returns a key in a form that is safe in a line of a list, because keys may contain any
 * characters.
 */
function printable(key: string): string {
  return /^[\w.-]+$/u.test(key) ? key : JSON.stringify(key.slice(0, 40));
}
