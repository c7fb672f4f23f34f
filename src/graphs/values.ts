import type { z } from 'zod';
import type { Predicate, PredicateOperator } from '../core/definition/predicate.js';
import { InputError } from '../core/errors.js';
import { type Json, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';

const MAX_DEPTH = 100;

/** Returns the replacement for a value, or undefined to convert the value itself. */
type Replace = (value: unknown, where: string) => Json | undefined;

/**
 * Returns a copy of a value as JSON; undefined fields are omitted. Throws an `InputError` that
 * names the place for anything that JSON cannot hold: functions, dates, big integers, cycles.
 */
export function jsonOf(value: unknown, where: string, replace?: Replace): Json {
  return copy(value, { where, replace, above: [], fail: (message) => new InputError(message) });
}

/** Does the same as `jsonOf` for the result of an author's function. Throws an `Error`. */
export function returnedJson(value: unknown, where: string): Json {
  return copy(value, {
    where,
    replace: undefined,
    above: [],
    fail: (message) => new Error(message),
  });
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

declare const AT: unique symbol;

/** A place in a graph's state, or in the item of an `each`: it stands for a value of this type. */
export interface GraphPathOf<Value> {
  readonly [AT]: Value;
}

/** The conditions that a place offers. */
export interface GraphPathConditions<Value> {
  is(value: Value & Json): Predicate;
  isNot(value: Value & Json): Predicate;
  over(limit: number): Predicate;
  under(limit: number): Predicate;
  in(values: readonly (Value & Json)[]): Predicate;
  exists(): Predicate;
  /** Compares with a glob: `*` stands for any characters and `?` for one. */
  matches(glob: string): Predicate;
}

/** A place, with the places within it and the conditions about it. */
export type GraphPath<Value> = GraphPathOf<Value> &
  GraphPathConditions<NonNullable<Value>> &
  Within<NonNullable<Value>>;

type Within<Value> = Value extends readonly (infer Item)[]
  ? { readonly [index: number]: GraphPath<Item> }
  : Value extends object
    ? { readonly [Key in keyof Value]-?: GraphPath<Value[Key]> }
    : unknown;

/** A text with places in it, made by the tag `text`. */
export interface GraphText {
  readonly $text: readonly Json[];
}

/** A value that a node computes from the state: JSON, with places and texts anywhere in it. */
export type GraphTemplate =
  | Json
  | GraphPathOf<unknown>
  | GraphText
  | readonly GraphTemplate[]
  | { readonly [key: string]: GraphTemplate };

interface Place {
  readonly kind: '$path' | '$item';
  readonly steps: readonly string[];
}

const places = new WeakMap<object, Place>();

const OPERATORS: ReadonlyMap<string, PredicateOperator> = new Map([
  ['is', 'eq'],
  ['isNot', 'ne'],
  ['over', 'over'],
  ['under', 'under'],
  ['in', 'in'],
  ['exists', 'exists'],
  ['matches', 'matches'],
]);

/** Returns the place of a whole state or item. Every name leads to a place within it. */
export function pathTo(kind: Place['kind'], steps: readonly string[] = []): unknown {
  const path: unknown = new Proxy(() => undefined, {
    get: (_, key) => {
      if (typeof key === 'string') return pathTo(kind, [...steps, checkedStep(key)]);
      if (key === Symbol.toPrimitive) return refuseText(steps);
      return undefined;
    },
    apply: (_, __, given: readonly unknown[]) => condition(kind, steps, given),
    set: () => false,
  });
  if (typeof path === 'function') places.set(path, { kind, steps });
  return path;
}

function checkedStep(key: string): string {
  if (key !== '' && !key.includes('.')) return key;
  throw new InputError(`path: expected a name without ".", got ${show(key)}; rename the field`);
}

/** Throws when JavaScript converts a place to a string, as an untagged template literal does. */
function refuseText(steps: readonly string[]): () => never {
  return () => {
    const name = steps.join('.');
    throw new InputError(
      `path "${name}": expected a place, got a conversion to a text or number; ` +
        `write text\`… \${s.${name}} …\` with the tag \`text\``,
    );
  };
}

/** Returns the condition that a call such as `s.urgent.is(true)` stands for. */
function condition(
  kind: Place['kind'],
  steps: readonly string[],
  [value]: readonly unknown[],
): Predicate {
  const name = steps.at(-1) ?? '';
  const path = steps.slice(0, -1).join('.');
  const op = OPERATORS.get(name);
  if (op === undefined) {
    const known = [...OPERATORS.keys()].join(', ');
    throw new InputError(`path "${path}": expected one of ${known}, got a call of "${name}"`);
  }
  if (kind === '$item') {
    throw new InputError(
      `item "${path}": expected no condition; write it in \`run\` or before the node`,
    );
  }
  if (op === 'exists') return { op, path };
  return { op, path, value: jsonOf(value, `path "${path}": ${name}`) };
}

/**
 * Makes a text with places of the state in it. Use it as the tag of a template literal.
 *
 * @example
 * ```ts
 * import { defineGraph, text } from 'perdure/graphs';
 * import { z } from 'zod';
 *
 * export const ask = defineGraph({
 *   name: 'ask',
 *   state: z.object({ question: z.string(), answer: z.string().optional() }),
 *   answerFrom: 'answer',
 *   nodes: ({ agent }) => ({
 *     ask: agent({ agent: 'desk', message: (s) => text`Answer: ${s.question}`, save: 'answer' }),
 *   }),
 * }).wire({ start: 'ask', edges: { ask: { done: 'end', stopped: 'end', failed: 'end' } } });
 * ```
 */
export function text(
  strings: readonly string[],
  ...values: readonly (GraphPathOf<unknown> | string | number)[]
): GraphText {
  const parts = strings.flatMap((string, index): readonly Json[] => {
    if (index >= values.length) return string === '' ? [] : [string];
    const value = values[index];
    const written = typeof value === 'number' ? String(value) : templateOf(value, 'text');
    return string === '' ? [written] : [string, written];
  });
  return Object.freeze({ $text: Object.freeze(parts) });
}

/** Returns a value with its places as JSON. Throws an `InputError` for what JSON cannot hold. */
export function templateOf(value: unknown, where: string): Json {
  return jsonOf(value, where, (inner, at) => {
    if (typeof inner === 'function') {
      const place = places.get(inner);
      return place && { [place.kind]: place.steps.join('.') };
    }
    if (isObject(inner)) refuseMarks(inner, at);
    return undefined;
  });
}

/** Refuses objects that look like a place or a text but are neither. */
function refuseMarks(value: Readonly<Record<string, unknown>>, where: string): void {
  for (const mark of ['$path', '$item', '$text']) {
    if (!Object.hasOwn(value, mark)) continue;
    const inner = value[mark];
    const fits = mark === '$text' ? Array.isArray(inner) : typeof inner === 'string';
    if (fits && Object.keys(value).length === 1) continue;
    throw new InputError(
      `${where}: expected no key "${mark}", which stands for a place; rename it`,
    );
  }
}

/**
 * The state that a node's function reads. A required field without a value throws when it is read.
 */
export type GraphStateOf<Shape extends z.ZodObject> = Readonly<z.output<Shape>>;

/** What a node's function may change: fields in the input form of the schema. */
export type GraphPatchOf<Shape extends z.ZodObject> = Partial<z.input<Shape>>;

/** The names of the state's fields. */
export type GraphFieldOf<Shape extends z.ZodObject> = Extract<keyof z.output<Shape>, string>;

/** The fields whose type can hold at least one value of a kind, such as a text or a list. */
export type GraphFieldTaking<Shape extends z.ZodObject, Kind> = {
  [Field in GraphFieldOf<Shape>]: unknown extends z.input<Shape>[Field]
    ? Field
    : [Extract<z.input<Shape>[Field], Kind>] extends [never]
      ? never
      : Field;
}[GraphFieldOf<Shape>];

/** The fields whose type takes every value of a type; all fields if that type is any JSON. */
export type GraphFieldHolding<Shape extends z.ZodObject, Value> = [Json] extends [Value]
  ? GraphFieldOf<Shape>
  : {
      [Field in GraphFieldOf<Shape>]: [Value] extends [z.input<Shape>[Field]] ? Field : never;
    }[GraphFieldOf<Shape>];
