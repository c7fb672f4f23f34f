import { Buffer } from 'node:buffer';
import { types } from 'node:util';
import type { Json } from '../../core/json.js';

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

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
