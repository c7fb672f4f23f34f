import { Buffer } from 'node:buffer';
import { types } from 'node:util';
import { type Json, isObject } from '../../core/text/json.js';
import { wellFormed } from '../../core/text/text.js';
import { redact, redactMessage } from '../../secrets/redact.js';

const MAX_DEPTH = 100;
const MAX_VALUES = 1_000_000;
const MAX_CHARACTERS = 64 * 1024 * 1024;
const HEAD_BYTES = 48;

/** One conversion: the remaining budget, and the objects around the current one. */
interface Walk {
  values: number;
  characters: number;
  /** Describes the first part whose content, not only its form, was lost. */
  lost?: string;
  readonly ancestors: Set<object>;
}

/**
 * Converts any value to JSON data and marks what JSON cannot express: BigInt, NaN, and Infinity
 * become text, a Map an object (or a list of pairs), a Set a list, an Error its name and message, a
 * Date ISO text, bytes a note with their size. Notes in brackets stand for cycles, functions,
 * streams, and getters that throw. The result has at most a million values and 64 Mi characters; a
 * note stands for the rest.
 *
 * Never throws, reads getters at most once, and does not change the value.
 */
export function toPlain(value: unknown): Json {
  const walk: Walk = { values: MAX_VALUES, characters: MAX_CHARACTERS, ancestors: new Set() };
  return convert(value, walk) ?? null;
}

/**
 * Converts a value like `toPlain`, or returns what would be lost: bytes, functions, cycles, or
 * values beyond the limits.
 */
export function toWholePlain(value: unknown): { readonly plain: Json } | { readonly lost: string } {
  const walk: Walk = { values: MAX_VALUES, characters: MAX_CHARACTERS, ancestors: new Set() };
  const plain = convert(value, walk) ?? null;
  if (walk.values <= 0) return { lost: `more than ${MAX_VALUES} values` };
  if (walk.characters <= 0) return { lost: `more than ${MAX_CHARACTERS} characters` };
  return walk.lost === undefined ? { plain } : { lost: walk.lost };
}

function convert(value: unknown, walk: Walk): Json | undefined {
  walk.values -= 1;
  switch (typeof value) {
    case 'string':
      return bounded(value, walk);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return bounded(value.toString(), walk);
    case 'boolean':
      return value;
    case 'undefined':
      return undefined;
    case 'symbol':
      walk.lost ??= 'a symbol';
      return bounded(`[symbol ${value.description ?? ''}]`, walk);
    case 'function':
      walk.lost ??= 'a function';
      return `[function ${attempt(() => textOf(value.name).slice(0, 100)) || 'without a name'}]`;
    case 'object':
      return value === null ? null : convertObject(value, walk);
  }
}

function convertObject(value: object, walk: Walk): Json | undefined {
  if (walk.ancestors.has(value)) return noted(walk, 'circular');
  if (walk.ancestors.size >= MAX_DEPTH) return noted(walk, 'nested too deep');
  walk.ancestors.add(value);
  try {
    return convertKnown(value, walk);
  } catch (error) {
    return noted(walk, `unreadable: ${reason(error)}`);
  } finally {
    walk.ancestors.delete(value);
  }
}

function convertKnown(value: object, walk: Walk): Json | undefined {
  if (Array.isArray(value)) return list(value.values(), value.length, walk);
  if (types.isDate(value))
    return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (types.isNativeError(value) || value instanceof Error) {
    return {
      name: bounded(textOf(value.name), walk),
      message: bounded(textOf(value.message), walk),
    };
  }
  if (types.isMap(value)) return convertMap(value, walk);
  if (types.isSet(value)) return list(value.values(), value.size, walk);
  if (types.isBoxedPrimitive(value)) return convert(value.valueOf(), walk);
  if (types.isRegExp(value)) return bounded(String(value), walk);
  if (types.isPromise(value)) return noted(walk, 'promise');
  if (value instanceof Blob) {
    walk.lost ??= `${value.size} bytes that are not text`;
    return { type: 'binary', bytes: value.size };
  }
  if (types.isAnyArrayBuffer(value)) return bytesOf(Buffer.from(value), walk);
  if (ArrayBuffer.isView(value)) return convertView(value, walk);
  if (isStream(value)) return noted(walk, 'stream');
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return convert(Reflect.apply(toJSON, value, []), walk);
  if (isIterable(value)) return list(value, undefined, walk);
  return convertProperties(value, walk);
}

function convertProperties(value: object, walk: Walk): Json {
  const keys = Object.keys(value);
  if (keys.length === 0 && !isPlain(value)) return `[${value.constructor.name}]`;
  const result: Record<string, Json> = Object.create(null);
  for (const [index, key] of keys.entries()) {
    if (walk.values <= 0 || walk.characters <= 0) {
      result['…'] = `[${keys.length - index} more properties omitted]`;
      break;
    }
    const item = property(value, key, walk);
    if (item !== undefined) result[bounded(key, walk)] = item;
  }
  return result;
}

function property(value: object, key: string, walk: Walk): Json | undefined {
  try {
    return convert(Reflect.get(value, key), walk);
  } catch (error) {
    return noted(walk, `getter threw: ${reason(error)}`);
  }
}

/**
 * Returns whether an object is a plain one. Other objects without properties are not shown as `{}`.
 */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function convertMap(value: ReadonlyMap<unknown, unknown>, walk: Walk): Json {
  const keys = [...value.keys()];
  if (keys.length > walk.values || !keys.every((key) => typeof key === 'string')) {
    return list(value.entries(), value.size, walk);
  }
  const result: Record<string, Json> = Object.create(null);
  for (const [key, item] of value) {
    if (walk.values <= 0 || walk.characters <= 0) break;
    result[bounded(textOf(key), walk)] = convert(item, walk) ?? null;
  }
  return result;
}

/** Converts views of numbers to lists, and bytes to a note, because a model cannot read them. */
function convertView(value: ArrayBufferView, walk: Walk): Json {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const isNumbers =
    types.isTypedArray(value) && !types.isUint8Array(value) && !types.isUint8ClampedArray(value);
  return isNumbers ? list(value as Iterable<unknown>, value.length, walk) : bytesOf(bytes, walk);
}

function bytesOf(bytes: Buffer, walk: Walk): Json {
  walk.lost ??= `${bytes.length} bytes that are not text`;
  return binaryNote(bytes);
}

/** Returns the note that replaces something that is not data, and marks it as lost. */
function noted(walk: Walk, what: string): string {
  walk.lost ??= `something ${what}`;
  return `[${what}]`;
}

/** Returns the note that replaces bytes that are not text. */
export function binaryNote(bytes: Buffer): Json {
  return {
    type: 'binary',
    bytes: bytes.length,
    base64Head: bytes.subarray(0, HEAD_BYTES).toString('base64'),
  };
}

function list(items: Iterable<unknown>, size: number | undefined, walk: Walk): Json {
  const result: Json[] = [];
  for (const item of items) {
    if (walk.values <= 0 || walk.characters <= 0) {
      result.push(size === undefined ? '[more omitted]' : `[${size - result.length} more omitted]`);
      break;
    }
    result.push(convert(item, walk) ?? null);
  }
  return result;
}

function isStream(value: object): boolean {
  return ['pipe', 'getReader', Symbol.asyncIterator].some(
    (member) => typeof Reflect.get(value, member) === 'function',
  );
}

function isIterable(value: object): value is Iterable<unknown> {
  return typeof Reflect.get(value, Symbol.iterator) === 'function';
}

/** Returns a text, or a note: names and messages of errors may have any type at runtime. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : `[${typeof value}]`;
}

function reason(error: unknown): string {
  return attempt(() =>
    error instanceof Error ? textOf(error.message).slice(0, 200) : 'no reason',
  );
}

function bounded(text: string, walk: Walk): string {
  const allowed = Math.max(0, walk.characters);
  walk.characters -= text.length;
  if (text.length <= allowed) return text;
  return `${text.slice(0, allowed)}[${text.length - allowed} characters omitted]`;
}

function attempt(reader: () => string): string {
  try {
    return reader();
  } catch {
    return '';
  }
}

const KEYS = ['error', 'code'];

/**
 * Returns the message of an error that a tool returns instead of throwing: an `Error`, an object
 * with only `error` and perhaps `code`, or one with `success: false`. Returns null for all other
 * values, which are data even if they have an `error`.
 */
export function returnedError(value: unknown): string | null {
  if (value instanceof Error) return value.message || value.name;
  if (isObject(value) && value['success'] === false) return failureText(value);
  if (!isObject(value) || !Object.keys(value).every((key) => KEYS.includes(key))) return null;
  const { error, code } = value;
  if (error === undefined || error === null || error === '' || error === false) return null;
  const message = messageOf(error);
  const suffix = code === undefined || code === null ? '' : messageOf(code);
  if (suffix === '') return message;
  return suffix.includes('\n') ? `${message}\ncode:\n${suffix}` : `${message} (code ${suffix})`;
}

/**
 * Returns a result's description of its failure: `error`, else `message`, else the whole result.
 */
export function failureText(value: unknown): string {
  const { error, message } = isObject(value) ? value : {};
  const text = [error, message].find((one) => one !== undefined && one !== null && one !== '');
  return messageOf(text ?? value);
}

function messageOf(value: unknown): string {
  if (value instanceof Error) return value.message || value.name;
  const plain = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

/** Returns the longest start of `text` that fits `maxBytes` of UTF-8, cut between characters. */
export function headBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.slice(0, maxBytes));
  if (bytes.length <= maxBytes) return text.slice(0, maxBytes);
  let end = maxBytes;
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** Returns the longest end of `text` that fits `maxBytes` of UTF-8, cut between characters. */
export function tailBytes(text: string, maxBytes: number): string {
  if (maxBytes <= 0) return '';
  const bytes = Buffer.from(text.slice(-maxBytes));
  if (bytes.length <= maxBytes) return text.slice(-maxBytes);
  let start = bytes.length - maxBytes;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return bytes.toString('utf8', start);
}

/** Returns whether a byte is inside a UTF-8 character, that is, not its first byte. */
export function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

const MAX_MESSAGE_BYTES = 4 * 1024;
const MAX_TYPE_LENGTH = 100;
const MAX_CAUSES = 3;

/** An error as data, for the model and for reports. */
interface NormalizedError {
  /** The error's name, such as `ToolError`; `Error` if the thrown value is not an error. */
  readonly type: string;
  /** At most 4 KiB of UTF-8, secrets redacted, causes appended. */
  readonly message: string;
}

/** Converts any thrown value into data. Never throws. */
export function normalizeError(thrown: unknown): NormalizedError {
  const { type, message } = read(thrown);
  const text = wellFormed(redactMessage(message));
  const omitted = Buffer.byteLength(text) - MAX_MESSAGE_BYTES;
  if (omitted <= 0) return { type, message: text };
  const note = `… [cut, ${Buffer.byteLength(text)} bytes in all]`;
  return {
    type,
    message: headBytes(text, MAX_MESSAGE_BYTES - Buffer.byteLength(note)) + note,
  };
}

function read(thrown: unknown): NormalizedError {
  try {
    if (isError(thrown)) {
      const name = typeof thrown.name === 'string' ? thrown.name : '';
      return { type: redact(name).slice(0, MAX_TYPE_LENGTH) || 'Error', message: messages(thrown) };
    }
    if (thrown === undefined || thrown === null || thrown === '') {
      return { type: 'Error', message: `it threw ${thrown === '' ? 'an empty text' : thrown}` };
    }
    const { message } = thrown as { message?: unknown };
    if (typeof message === 'string' && message !== '') return { type: 'Error', message };
    return { type: 'Error', message: asText(thrown) };
  } catch {
    return { type: 'Error', message: 'it threw an object that cannot be read' };
  }
}

/**
 * Joins the messages of an error and its causes: "fetch failed" alone does not explain a failure.
 */
function messages(error: Error): string {
  const found: string[] = [];
  let current: unknown = error;
  for (
    let depth = 0;
    depth <= MAX_CAUSES && current !== undefined && current !== null;
    depth += 1
  ) {
    const text = isError(current) ? ownMessage(current) : asText(current);
    if (!found.some((earlier) => earlier.includes(text))) found.push(text);
    current = isError(current) ? (current.cause ?? firstOfMany(current)) : undefined;
  }
  return found.filter((text) => text !== '').join(': ') || error.name || 'Error';
}

function ownMessage(error: Error): string {
  return asText(error.message);
}

function asText(value: unknown): string {
  const plain = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}

function firstOfMany(error: Error): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : undefined;
}

function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
