import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { jsonText, show, wellFormed } from './text.js';

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** A JSON object. A field that is undefined is absent. */
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Whether a value is an object other than an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether JSON is an object. For a value that may hold something else, see `isJsonObject`. */
export function isRecord(value: unknown): value is JsonObject {
  return isObject(value);
}

/** Whether one of several is given as a list, which `Array.isArray` does not tell of a read-only one. */
export function isList<T>(given: T | readonly T[]): given is readonly T[] {
  return Array.isArray(given);
}

/** Whether a value is an object that holds only JSON, at any depth. */
export function isJsonObject(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  // Not by recursion: a value from outside may be nested deeper than the stack.
  const open: unknown[] = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part === 'object' && part !== null) {
      for (const inner of Object.values(part)) open.push(inner);
    } else if (!SCALARS.includes(typeof part) && part !== null) {
      return false;
    }
  }
  return true;
}

/** A field that is undefined is absent. */
const SCALARS = ['string', 'number', 'boolean', 'undefined'];

/** Returns JSON with sorted keys (in the order of RFC 8785), so that equal values give equal text. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter((entry): entry is [string, Json] => entry[1] !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${entries.join(',')}}`;
}

/** Returns the value of a JSON text; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a field of a recorded value if it is a string, else an empty string. */
export function textField(value: Record<string, unknown>, key: string): string {
  const text = value[key];
  return typeof text === 'string' ? text : '';
}

/** A JSON text from outside as a value, or what is wrong with it. */
type ForeignJson =
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

/**
 * Returns the SHA-256 of the UTF-8 bytes as 64 hex digits. It is pure JavaScript, for use in
 * workflow code.
 */
export function sha256Hex(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** Reads an error as a model would see it. */
export function errorIn(text: string): { readonly type: string; readonly message: string } {
  const value = parseText(text);
  const error = isObject(value) && isObject(value['error']) ? value['error'] : {};
  const message = textField(error, 'message');
  return { type: textField(error, 'type') || 'failed', message: message || text };
}

function parseText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Maximum characters of an answer. The outcome's output is the whole state. */
const MAX_ANSWER = 64 * 1024;

/** Returns a text as an outcome's answer, cut if it is too long. */
export function answerText(text: string): string {
  return text.length > MAX_ANSWER ? `${text.slice(0, MAX_ANSWER)}…` : text;
}

/** The data to which a computed value may refer. `item` is undefined outside of `each`. */
export interface Scope {
  readonly state: JsonObject;
  readonly item?: Json | undefined;
}

/**
 * Returns the value that a `GraphValue` stands for. A missing place evaluates to null, or to an
 * empty string inside a text. Never throws for JSON.
 */
export function evaluate(value: Json, scope: Scope): Json {
  if (Array.isArray(value)) return value.map((each: Json) => evaluate(each, scope));
  if (!isObject(value)) return value;
  const reference = referenceIn(value, scope);
  if (reference !== undefined) return reference;
  const entries = Object.entries(value).map(([key, each]) => [key, evaluate(each ?? null, scope)]);
  return Object.fromEntries(entries);
}

/** Returns the text that a `GraphValue` stands for; anything that is not a text becomes JSON. */
export function evaluateText(value: Json, scope: Scope): string {
  return toText(evaluate(value, scope));
}

/** Returns the value of a reference; undefined for an object that is not a reference. */
function referenceIn(value: JsonObject, { state, item }: Scope): Json | undefined {
  const keys = Object.keys(value);
  if (keys.length !== 1) return undefined;
  const { $path, $item, $text } = value;
  if (typeof $path === 'string') return valueAt(state, $path) ?? null;
  if (typeof $item === 'string') return valueAt(item, $item) ?? null;
  if (!Array.isArray($text)) return undefined;
  return $text.map((part: Json) => toText(evaluate(part, { state, item }))).join('');
}

function toText(value: Json): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the value at a place such as `items.0.price`; an empty path is the value itself. */
export function valueAt(value: Json | undefined, path: string): Json | undefined {
  if (path === '') return value;
  return path.split('.').reduce<Json | undefined>((inner, key) => {
    if (Array.isArray(inner)) return /^\d+$/.test(key) ? inner[Number(key)] : undefined;
    return isObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined;
  }, value);
}

/** Maximum items of one `each`, whose calls and results are passed from segment to segment. */
const MAX_ITEMS = 1_000;

/**
 * Returns the list over which an `each` iterates; null if the value is not a list or is too long.
 */
export function itemsOf(over: Json, values: JsonObject): readonly Json[] | null {
  const list = evaluate(over, { state: values });
  return Array.isArray(list) && list.length <= MAX_ITEMS ? list : null;
}

/**
 * Maximum UTF-16 code units of a message, a context, or arguments. Larger data belongs in a file.
 */
const MAX_TEXT_CHARACTERS = 256 * 1024;

/** Returns what is wrong with the arguments of a template, or null. */
export function checkArgs(value: unknown): string | null {
  return checkObject('args', value, '{"city": "Rome"}');
}

/** Returns what is wrong with the input of a graph, or null. */
export function checkInput(value: unknown): string | null {
  return checkObject('input', value, '{"text": "Hello"}');
}

/** Returns what is wrong with the context of a run, or null. */
export function checkContext(value: unknown): string | null {
  if (value === undefined) return null;
  if (isTooDeep(value)) return tooDeep('context');
  const text = jsonText(value);
  if (text === undefined) return 'context: expected JSON; give what JSON.stringify can serialize';
  return tooLong('context', text.length);
}

function checkObject(field: string, value: unknown, example: string): string | null {
  if (value === undefined) return null;
  if (!isObject(value) || Array.isArray(value)) {
    return `${field}: expected an object, got ${show(value)}; give for example ${example}`;
  }
  if (isTooDeep(value)) return tooDeep(field);
  const text = jsonText(value);
  return text === undefined ? `${field}: expected JSON` : tooLong(field, text.length);
}

/** Returns a problem if a field has too many characters, else null. */
export function tooLong(field: string, characters: number): string | null {
  if (characters <= MAX_TEXT_CHARACTERS) return null;
  return (
    `${field}: expected at most ${MAX_TEXT_CHARACTERS} characters, got ${characters}; ` +
    'put the text into a file and name the file'
  );
}
