import { isObject } from './json.js';
import { wellFormed } from './text/whole-text.js';

/** A JSON text from outside as a value, or what is wrong with it. */
export type ForeignJson =
  | { readonly ok: true; readonly value: unknown }
  /** `isJson` is false if the text is not JSON at all. */
  | { readonly ok: false; readonly isJson: boolean; readonly problem: string };

/** Values from outside may be nested this deep; deeper ones would exhaust stacks. */
const MAX_LEVELS = 200;

/** A double is written with at most this many digits. */
const MAX_DIGITS = 17;

/** A fast test: nearly every text has no number that could change, and no half character. */
const MAY_CHANGE = /\d{16}|\d[eE]|-0/;
const MAY_BE_HALF = /\\u[dD][89a-fA-F]/;

/**
 * Parses JSON that a model, a person, a file, or a server has written. Refuses numbers that a
 * program would change, such as integers beyond 2^53, and values of more than 200 levels. Half
 * surrogate pairs become U+FFFD, and -0 becomes 0, as in any later JSON. Never throws.
 */
export function parseForeignJson(text: string): ForeignJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { ok: false, isJson: false, problem };
  }
  if (isTooDeep(value)) {
    const problem = `expected at most ${MAX_LEVELS} levels, got more; flatten the value`;
    return { ok: false, isJson: true, problem };
  }
  const mayChange = MAY_CHANGE.test(text);
  const number = mayChange ? findChangingNumber(text) : undefined;
  if (number !== undefined) {
    const shown = number.length > 60 ? `${number.slice(0, 60)}…` : number;
    const problem = `the number ${shown} cannot be kept exactly; send it as text: "${shown}"`;
    return { ok: false, isJson: true, problem };
  }
  const isUnclean = mayChange || MAY_BE_HALF.test(text) || !text.isWellFormed();
  return { ok: true, value: isUnclean ? cleaned(value) : value };
}

/** Whether a value has more than 200 levels. Does not recurse. */
export function isTooDeep(root: unknown): boolean {
  const open: { readonly value: unknown; readonly level: number }[] = [{ value: root, level: 0 }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, level } = next;
    if (typeof value !== 'object' || value === null) continue;
    if (level >= MAX_LEVELS) return true;
    for (const inner of Object.values(value)) open.push({ value: inner, level: level + 1 });
  }
  return false;
}

/**
 * Returns a JSON text in which integers that a program would change are texts, so that they stay
 * exact. For what cannot be refused, because it has been paid for or has had its effect.
 */
export function quoteLargeIntegers(json: string): string {
  if (!MAY_CHANGE.test(json)) return json;
  const parts: string[] = [];
  let from = 0;
  for (const { at, token } of numbersIn(json)) {
    if (!isChanging(token)) continue;
    parts.push(json.slice(from, at), `"${token}"`);
    from = at + token.length;
  }
  return parts.length === 0 ? json : parts.join('') + json.slice(from);
}

function findChangingNumber(json: string): string | undefined {
  for (const { token } of numbersIn(json)) if (isChanging(token)) return token;
  return undefined;
}

/** Finds the numbers of a JSON text outside its strings, in linear time. */
function* numbersIn(json: string): Generator<{ readonly at: number; readonly token: string }> {
  const starts = /["\d-]/g;
  const number = /-?\d[\d.eE+-]*/y;
  for (let found = starts.exec(json); found; found = starts.exec(json)) {
    const at = found.index;
    if (found[0] === '"') {
      starts.lastIndex = endOfString(json, at);
      continue;
    }
    number.lastIndex = at;
    const token = number.exec(json)?.[0];
    if (token === undefined) continue;
    starts.lastIndex = at + token.length;
    yield { at, token };
  }
}

function endOfString(json: string, start: number): number {
  const marks = /["\\]/g;
  marks.lastIndex = start + 1;
  for (let found = marks.exec(json); found; found = marks.exec(json)) {
    if (found[0] === '"') return found.index + 1;
    marks.lastIndex = found.index + 2;
  }
  return json.length;
}

/** Whether a number is another one after `JSON.parse`. Fractions are approximate by nature. */
function isChanging(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return true;
  if (value === 0) return /^-?[\d.]*[1-9]/.test(token);
  const [whole = ''] = /^-?\d+(?=(?:\.0+)?$)/.exec(token) ?? [];
  if (whole !== '') return !Number.isSafeInteger(value) && String(value) !== whole;
  const [mantissa = ''] = token.split(/e/i, 1);
  const digits = mantissa.replaceAll(/[-.]/g, '').replace(/^0+/, '');
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && digits.length > MAX_DIGITS;
}

/**
 * Returns a value with half surrogate pairs replaced by U+FFFD at any depth, in the names of fields
 * too; the same value if it has none. A value that is too deep stays unchanged.
 */
export function wellFormedJson<T>(value: T): T {
  // A cycle has no end.
  if (isTooDeep(value)) return value;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const part = open.pop();
    const isHalf = typeof part === 'string' && !part.isWellFormed();
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts stay texts, and shapes shapes
    if (isHalf) return cleaned(value) as T;
    if (Array.isArray(part)) for (const item of part) open.push(item);
    else if (isObject(part)) {
      for (const [name, item] of Object.entries(part)) open.push(name, item);
    }
  }
  return value;
}

/** Returns the text that a field is nested too deeply. */
export function tooDeep(field: string): string {
  return `${field}: expected at most ${MAX_LEVELS} levels, got more; flatten the value`;
}

/** Stands for the parts of a value that are nested too deeply. */
const TOO_DEEP = `[more than ${MAX_LEVELS} levels, omitted]`;

/**
 * Returns a value whose parts below 200 levels are replaced by a note; the same value if it has none.
 * For what cannot be refused, because it is the result of something that has been executed.
 */
export function withinLevels(value: unknown): unknown {
  return isTooDeep(value) ? cutBelow(value, MAX_LEVELS) : value;
}

function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return TOO_DEEP;
  if (Array.isArray(value)) return value.map((item: unknown) => cutBelow(item, levels - 1));
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([name, item]) => [name, cutBelow(item, levels - 1)]));
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value);
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map((item: unknown) => cleaned(item));
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([name, item]) => [wellFormed(name), cleaned(item)]));
}
