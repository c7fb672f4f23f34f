import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { writtenSchema } from '../tools/arguments/check-arguments.js';
import { describeIssues } from '../validation/check-options.js';
import { likelyMeant } from '../validation/near-names.js';
import { jsonOf, returnedJson } from './values.js';

const FIELD = /^(?!__proto__$)[^.]{1,100}$/s;

/** The schemas of a state's fields, by name. */
export type StateFields = ReadonlyMap<string, z.core.$ZodType>;

/** Returns the fields of a state. Throws an `InputError` for a name that a path cannot contain. */
export function getFields(graph: string, schema: z.ZodObject): StateFields {
  const fields = new Map(Object.entries(schema.shape));
  for (const name of fields.keys()) {
    if (FIELD.test(name)) continue;
    throw new InputError(
      `graph "${graph}": state: expected names of 1 to 100 characters without ".", got ${show(name)}; ` +
        'rename the field',
    );
  }
  for (const [name, type] of fields) {
    const kind = unrecordable(type, new Set());
    if (kind === undefined) continue;
    throw new InputError(
      `graph "${graph}": state.${name}: expected a type whose values are JSON, got z.${kind}(); ` +
        `the state is recorded as JSON, so use ${INSTEAD[kind] ?? 'JSON'}`,
    );
  }
  return fields;
}

/** Kinds of types whose values do not come back from the recorded state, and what to use instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  bigint: 'z.string()',
  date: 'z.iso.datetime()',
  file: 'z.string() with the name of an artifact',
  function: 'a function of the node',
  map: 'z.record()',
  nan: 'z.number().nullable()',
  promise: 'the type of its value',
  set: 'z.array()',
  symbol: 'z.string()',
};

/**
 * Returns the kind of a type whose values JSON cannot hold, at any depth; undefined if there is
 * none. What a type converts its input from or to is not recorded, so only the input of a pipe
 * counts, and a conversion (`z.coerce`) accepts what was recorded.
 */
function unrecordable(type: z.core.$ZodType, seen: Set<object>): string | undefined {
  if (seen.has(type)) return undefined;
  seen.add(type);
  const {
    _zod: { def },
  } = type;
  const isCoerced = 'coerce' in def && def.coerce === true;
  if (Object.hasOwn(INSTEAD, def.type) && !isCoerced) return def.type;
  const parts = Object.keys(def).flatMap((key): unknown[] => {
    // A default may be a getter that runs the author's code.
    if (key === 'defaultValue' || (def.type === 'pipe' && key === 'out')) return [];
    const part: unknown = Reflect.get(def, key);
    if (key === 'shape' || key === 'items' || key === 'options') return Object.values(Object(part));
    return [part];
  });
  for (const part of parts) {
    const found = isType(part) ? unrecordable(part, seen) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function isType(value: unknown): value is z.core.$ZodType {
  return isObject(value) && '_zod' in value;
}

/** What a node saves: a kind of JSON, or the type of the value. */
export type SavedResult = JsonKind | z.core.$ZodType;

type JsonKind = 'a text' | 'a number' | 'true or false' | 'a list' | 'an object' | 'null';

/** The kinds of JSON that the types without parts accept; those that are missing accept any. */
const KINDS: Readonly<Record<string, JsonKind>> = {
  array: 'a list',
  boolean: 'true or false',
  enum: 'a text',
  int: 'a number',
  null: 'null',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  string: 'a text',
  template_literal: 'a text',
  tuple: 'a list',
};

/** Types that accept what their inner type accepts, as far as a saved value is concerned. */
const WRAPPERS: ReadonlySet<string> = new Set([
  'catch',
  'default',
  'nonoptional',
  'nullable',
  'optional',
  'prefault',
  'readonly',
]);

/**
 * Returns the kinds of JSON that a type accepts (`in`) or yields (`out`); null if that is not known.
 */
function kindsOf(type: z.core.$ZodType, side: 'in' | 'out'): readonly JsonKind[] | null {
  const {
    _zod: { def },
  } = type;
  if ('coerce' in def && def.coerce === true && side === 'in') return null;
  if (def.type === 'enum' && 'entries' in def) {
    const values = Object.values(Object(def.entries));
    return values.some((value) => typeof value !== 'string') ? null : ['a text'];
  }
  const kind = Object.hasOwn(KINDS, def.type) ? KINDS[def.type] : undefined;
  if (kind !== undefined) return [kind];
  const part: unknown =
    def.type === 'pipe' ? Reflect.get(def, side) : Reflect.get(def, 'innerType');
  if (def.type === 'union' && 'options' in def && Array.isArray(def.options)) {
    const all = def.options.map((one: unknown) => (isType(one) ? kindsOf(one, side) : null));
    return all.includes(null) ? null : all.flatMap((kinds) => kinds ?? []);
  }
  if (!isType(part) || (def.type !== 'pipe' && !WRAPPERS.has(def.type))) return null;
  const inner = kindsOf(part, side);
  return inner && def.type === 'nullable' ? [...inner, 'null'] : inner;
}

/** Throws an `InputError` if a field's type can hold no value of what a node saves in it. */
export function assertHolds(
  where: string,
  { field, type }: { readonly field: string; readonly type: z.core.$ZodType | undefined },
  result: SavedResult,
): void {
  const held = type && kindsOf(type, 'in');
  const given = typeof result === 'string' ? [result] : kindsOf(result, 'out');
  if (!held || !given) return;
  const [accepted, saved] = [held, given].map((kinds) => [...new Set(kinds)].join(' or '));
  if (given.some((kind) => held.includes(kind))) {
    const items = [
      elementOf(type, 'in'),
      typeof result === 'string' ? null : elementOf(result, 'out'),
    ];
    assertItemsHold(where, field, items);
    return;
  }
  throw new InputError(
    `${where}: expected a field for ${saved}, got ${show(field)}, which holds ${accepted}; ` +
      'name another field, or change its type',
  );
}

/** Throws an `InputError` if a list can hold no item of a saved list. */
function assertItemsHold(
  where: string,
  field: string,
  [into, from]: readonly (z.core.$ZodType | null | undefined)[],
): void {
  const held = into && kindsOf(into, 'in');
  const given = from && kindsOf(from, 'out');
  if (!held || !given || given.some((kind) => held.includes(kind))) return;
  const [accepted, saved] = [held, given].map((kinds) => [...new Set(kinds)].join(' or '));
  throw new InputError(
    `${where}: expected a field for a list with ${saved} per item, got ${show(field)}, whose items are ${accepted}; ` +
      'name another field, or change its type',
  );
}

/** Returns the type of a list's items; null for another type. */
function elementOf(type: z.core.$ZodType, side: 'in' | 'out'): z.core.$ZodType | null {
  const {
    _zod: { def },
  } = type;
  const inner: unknown =
    def.type === 'pipe' ? Reflect.get(def, side) : Reflect.get(def, 'innerType');
  if (def.type === 'array' && 'element' in def && isType(def.element)) return def.element;
  return isType(inner) && (def.type === 'pipe' || WRAPPERS.has(def.type))
    ? elementOf(inner, side)
    : null;
}

/**
 * Returns the type of an input: each field is optional, and those that JSON cannot express are left
 * out.
 */
export function inputType(fields: StateFields): z.ZodObject {
  const shape = [...fields].flatMap(([name, schema]) => {
    const field = z.optional(schema);
    return isWritable(field) ? [[name, field] as const] : [];
  });
  return z.object(Object.fromEntries(shape));
}

function isWritable(schema: z.ZodType): boolean {
  try {
    writtenSchema(schema, 'input');
    return true;
  } catch {
    return false;
  }
}

/** Returns the values of the fields that have a default, as JSON. */
export function initialValues(graph: string, fields: StateFields): JsonObject {
  const values = [...fields].flatMap(([name, schema]): [string, Json][] => {
    const where = `graph "${graph}": state.${name}: default`;
    const { success, data } = parsedNow(schema, undefined, where);
    if (!success || data === undefined) return [];
    const value = jsonOf(data, where);
    if (!parsedNow(schema, value, where).success) {
      throw new InputError(`${where}: expected a value that the field takes, got ${show(value)}`);
    }
    return [[name, value]];
  });
  return Object.fromEntries(values);
}

function parsedNow(
  schema: z.core.$ZodType,
  value: unknown,
  where: string,
): { readonly success: boolean; readonly data?: unknown } {
  try {
    return z.safeParse(schema, value);
  } catch (error) {
    // A field that can only be parsed asynchronously has no default that is known in advance.
    if (error instanceof z.core.$ZodAsyncError) return { success: false };
    const reason = error instanceof Error ? error.message : String(error);
    throw new InputError(`${where}: the schema threw: ${reason}`, { cause: error });
  }
}

/**
 * Returns the state for an author's function. A required field without a value is not enumerable;
 * reading it throws an `Error` that names the node and the field.
 */
export async function parsedState(
  where: string,
  fields: StateFields,
  recorded: JsonObject,
): Promise<Readonly<Record<string, unknown>>> {
  const state: Record<string, unknown> = {};
  for (const [name, schema] of fields) {
    const value = Object.hasOwn(recorded, name) ? recorded[name] : undefined;
    const { success, data, error } = await z.safeParseAsync(schema, value);
    if (success) {
      if (data !== undefined) define(state, name, data);
    } else if (value === undefined) {
      Object.defineProperty(state, name, { get: () => missing(where, name) });
    } else {
      throw new Error(faults(`${where}: state.${name}`, error, value));
    }
  }
  return Object.freeze(state);
}

/**
 * Returns why these fields do not take a recorded state, or null: a value that its schema refuses,
 * or a required field that is not among those that the run has `pinned`, so that nothing fills it.
 */
export async function stateMisfit(
  fields: StateFields,
  recorded: JsonObject,
  pinned: readonly string[],
): Promise<string | null> {
  for (const [name, schema] of fields) {
    const value = Object.hasOwn(recorded, name) ? recorded[name] : undefined;
    const { error } = await z.safeParseAsync(schema, value);
    if (error === undefined) continue;
    if (value !== undefined) return faults(`state.${name}`, error, value);
    if (!pinned.includes(name)) return `state.${name}: the run does not have this required field`;
  }
  return null;
}

function define(state: object, name: string, value: unknown): void {
  Object.defineProperty(state, name, { value, enumerable: true });
}

function missing(where: string, name: string): never {
  throw new Error(
    `${where}: field "${name}" has no value yet; fill it in a node before this one or in the input, ` +
      'or make it optional',
  );
}

/**
 * Returns a patch as JSON, in the form in which the author gave it. Throws an `Error` that names
 * the node and the field for an unknown field, and for a value that the schema refuses.
 */
export async function checkedPatch(
  where: string,
  fields: StateFields,
  patch: unknown,
): Promise<JsonObject> {
  if (patch === undefined) return {};
  if (!isObject(patch)) {
    throw new Error(`${where}: expected a patch such as { field: value }, got ${show(patch)}`);
  }
  const values = Object.entries(patch).filter(([, value]) => value !== undefined);
  for (const [name, value] of values) {
    const schema = fields.get(name);
    if (schema === undefined) throw new Error(unknownField(`${where} returned`, fields, name));
    const { error } = await z.safeParseAsync(schema, value);
    if (error !== undefined)
      throw new Error(faults(`${where} returned field "${name}"`, error, value));
  }
  return Object.fromEntries(
    values.map(([name, value]): [string, Json] => [
      name,
      returnedJson(value, `${where} returned field "${name}"`),
    ]),
  );
}

/** Returns the error text for a field that the state does not have, with a suggestion. */
export function unknownField(where: string, fields: StateFields, name: string): string {
  const known = [...fields.keys()];
  const meant = likelyMeant(name, known);
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  return (
    `${where} field ${show(name)}, which the state does not have; its fields are ` +
    `${known.join(', ')}${hint}`
  );
}

function faults(where: string, error: z.core.$ZodError, value: unknown): string {
  const lines = describeIssues(error.issues, value, {}).map((line) => line.slice(2));
  // A line about a place within the value shows what stands there.
  const isWithin = lines.every((line) => line.includes(', got '));
  return `${where}: ${lines.join('; ')}${isWithin ? '' : `, got ${show(value)}`}`;
}

/** The key that holds paths: `path` in conditions, `$path` in computed values. */
interface PathKey {
  readonly fields: StateFields;
  readonly key: 'path' | '$path';
}

/**
 * Throws an `InputError` if a condition or a computed value names a field that the state does not
 * have. For a typed state, the compiler reports the same fault.
 */
export function checkPaths(where: string, paths: PathKey, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) checkPaths(where, paths, item);
    return;
  }
  if (!isObject(value)) return;
  const path = Object.hasOwn(value, paths.key) ? value[paths.key] : undefined;
  if (typeof path !== 'string') {
    for (const inner of Object.values(value)) checkPaths(where, paths, inner);
    return;
  }
  const [field = ''] = path.split('.');
  if (path === '' || paths.fields.has(field)) return;
  throw new InputError(unknownField(`${where} reads`, paths.fields, field));
}
