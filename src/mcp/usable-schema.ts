import type { Json, JsonObject } from '../core/json.js';
import { isObject } from '../core/json.js';
import { orderedKeywords } from '../tools/arguments/written-schema.js';
import { hasHidden, stripHidden } from './hidden-text.js';

/** A schema that models can use, or why they cannot. */
export type UsableSchema =
  | { readonly ok: true; readonly schema: JsonObject }
  | { readonly ok: false; readonly problem: string };

const MAX_BYTES = 64 * 1024;
const MAX_LEVELS = 64;
/** Providers accept none of these at the root of a tool's arguments. */
const NOT_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];
/** Keywords with texts for readers, which do not constrain values. */
const FOR_READERS = new Set(['description', 'title', '$comment']);
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'example']);
/** Keywords that hold schemas by name. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'patternProperties']);
/** Keywords that hold a list of schemas. */
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
/** Keywords that hold one schema. */
const SINGLE = new Set(['items', 'additionalProperties', 'contains', 'not', 'propertyNames']);
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/**
 * Returns the schema of a tool's arguments for models: complete with its definitions, with keywords
 * in a fixed order, and without hidden characters in its texts for readers.
 */
export function usableSchema(schema: JsonObject): UsableSchema {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > MAX_BYTES) return no(`its schema has ${bytes} bytes, more than ${MAX_BYTES}`);
  if (schema['type'] !== 'object') return no('its schema is not of type "object"');
  const keyword = NOT_AT_ROOT.find((each) => (schema[each] ?? null) !== null);
  if (keyword !== undefined) return no(`its schema has "${keyword}" at its root`);
  const faults: string[] = [];
  const clean = cleaned(schema, { key: '', depth: 0, kind: 'schema', root: schema, faults });
  const [fault] = faults;
  if (fault !== undefined) return no(fault);
  return { ok: true, schema: isSchema(clean) ? orderedKeywords(clean) : {} };
}

interface Place {
  /** The keyword or name that holds the value. */
  readonly key: string;
  readonly depth: number;
  /** Whether the value is a schema, a keyword's value, schemas by names of its author, or data. */
  readonly kind: 'schema' | 'keyword' | 'names' | 'data';
  readonly root: JsonObject;
  readonly faults: string[];
}

function cleaned(value: Json, place: Place): Json {
  const { key, depth, kind, faults } = place;
  if (depth > MAX_LEVELS) {
    faults.push(`its schema is nested deeper than ${MAX_LEVELS} levels`);
    return null;
  }
  if (kind !== 'data') checkForm(value, place);
  if (typeof value === 'string') return cleanedText(value, place);
  if (Array.isArray(value)) {
    const inner = LISTS.has(key) || SINGLE.has(key) ? 'schema' : 'data';
    const items = { ...place, depth: depth + 1, kind: kind === 'keyword' ? inner : kind };
    return value.map((item: Json) => cleaned(item, items));
  }
  if (!isSchema(value)) return value;
  const entries = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    if (hasHidden(name)) faults.push('a name in its schema has hidden characters');
    const inner = kindWithin(kind, name);
    // Servers of other languages write absent keywords as null.
    const isAbsent = item === null && kind === 'schema' && name !== 'default' && name !== 'const';
    if (item === undefined || isAbsent) return [];
    return [[name, cleaned(item, { ...place, key: name, depth: depth + 1, kind: inner })]];
  });
  return Object.fromEntries(entries);
}

/** Returns the kind of a field's value, from the kind of the object that has the field. */
function kindWithin(kind: Place['kind'], name: string): Place['kind'] {
  if (kind === 'names') return 'schema';
  if (kind !== 'schema' || DATA.has(name)) return 'data';
  if (BY_NAME.has(name)) return 'names';
  return SINGLE.has(name) ? 'schema' : 'keyword';
}

/** Adds the fault of a value that no schema can have in its place: providers refuse the request. */
function checkForm(value: Json, { key, kind, faults }: Place): void {
  const fault = formFault(value, key, kind);
  if (fault !== null) faults.push(`its schema is invalid: ${fault}`);
}

function formFault(value: Json, key: string, kind: Place['kind']): string | null {
  const name = JSON.stringify(key.slice(0, 100));
  if (kind === 'names') return isObject(value) ? null : `${name} is not an object`;
  if (kind === 'schema') {
    const isList = key === 'items' && Array.isArray(value);
    return isObject(value) || typeof value === 'boolean' || isList ? null : `${name} is no schema`;
  }
  const items: readonly Json[] | null = Array.isArray(value) ? value : null;
  if (LISTS.has(key)) return items !== null && items.length > 0 ? null : `${name} is not a list`;
  if (key === 'required') {
    return items?.every((each) => typeof each === 'string')
      ? null
      : '"required" is not a list of names';
  }
  if (key !== 'type') return null;
  const types = items ?? [value];
  const areTypes = types.every((each) => typeof each === 'string' && TYPES.has(each));
  return areTypes && types.length > 0 ? null : '"type" is not a type';
}

function cleanedText(text: string, { key, kind, root, faults }: Place): string {
  if (kind === 'keyword' && FOR_READERS.has(key)) return stripHidden(text);
  if (kind === 'keyword' && key === '$ref') {
    if (!text.startsWith('#')) {
      faults.push(`its schema refers to ${JSON.stringify(text.slice(0, 200))}, which is not in it`);
    } else if (text.startsWith('#/') && !isPlaceIn(root, text)) {
      faults.push(`its schema refers to ${JSON.stringify(text.slice(0, 200))}, which it lacks`);
    }
  }
  if (hasHidden(text)) faults.push('a value in its schema has hidden characters');
  return text;
}

/** Returns whether a JSON pointer, such as `#/$defs/Place`, has a target. */
function isPlaceIn(root: JsonObject, pointer: string): boolean {
  let place: unknown = root;
  for (const part of pointer.slice(2).split('/')) {
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return false;
    place = Reflect.get(place, name);
  }
  return place !== null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isSchema(value: Json | undefined): value is JsonObject {
  return isObject(value);
}

function no(problem: string): UsableSchema {
  return { ok: false, problem };
}
