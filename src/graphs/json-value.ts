import { InputError } from '../core/errors.js';
import type { Json } from '../core/json.js';
import { show } from '../core/text/format-value.js';

const MAX_DEPTH = 100;

/** Returns the replacement for a value, or undefined to convert the value itself. */
type Replace = (value: unknown, where: string) => Json | undefined;

/**
 * Returns a copy of a value as JSON; undefined fields are omitted. Throws an `InputError` that
 * names the place for anything that JSON cannot hold: functions, dates, big integers, cycles.
 */
export function jsonOf(value: unknown, where: string, replace?: Replace): Json {
  return copy(value, { where, replace, above: [], fail: (text) => new InputError(text) });
}

/** Does the same as `jsonOf` for the result of an author's function. Throws an `Error`. */
export function returnedJson(value: unknown, where: string): Json {
  return copy(value, { where, replace: undefined, above: [], fail: (text) => new Error(text) });
}

interface At {
  readonly where: string;
  readonly replace: Replace | undefined;
  readonly fail: (message: string) => Error;
  readonly above: readonly object[];
}

function copy(value: unknown, at: At): Json {
  const replaced = at.replace?.(value, at.where);
  if (replaced !== undefined) return replaced;
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value !== 'object') throw notJson(at, named(value));
  if (at.above.includes(value)) throw notJson(at, 'a value that contains itself');
  if (at.above.length >= MAX_DEPTH) throw notJson(at, `more than ${MAX_DEPTH} levels`);
  const within = (inner: unknown, where: string): Json =>
    copy(inner, { ...at, where, above: [...at.above, value] });
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => within(item, `${at.where}[${index}]`));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) throw notJson(at, named(value));
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .map(([key, inner]): [string, Json] => [key, within(inner, `${at.where}.${key}`)]),
  );
}

/** Describes a value for an error, by its type if its text is not informative. */
function named(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `the big integer ${value}`;
  if (typeof value === 'object' && value !== null) return 'an object of a class';
  return typeof value === 'number' || value === undefined ? String(value) : show(value);
}

function notJson({ where, fail }: Pick<At, 'where' | 'fail'>, got: string): Error {
  return fail(`${where}: expected JSON, got ${got}; convert it first`);
}
