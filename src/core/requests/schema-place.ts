import { isObject, type Json, type JsonObject } from '../json.js';

/** What a JSON schema says about a path, as predicates write it: `items.0.price`. */
export type SchemaPlace =
  /** Schemas of the place, in which combinations are resolved. */
  | { readonly kind: 'found'; readonly schemas: readonly JsonObject[] }
  /** Any value may be there. */
  | { readonly kind: 'open' }
  /** No value that fits the schema has the place. `known`: the paths that exist where it fails. */
  | { readonly kind: 'missing'; readonly known: readonly string[] };

const MAX_SCHEMAS = 1_000;
const COMBINATIONS = ['anyOf', 'oneOf', 'allOf'] as const;
/** Keywords that are not understood here, so the place may be anything. */
const OPEN_KEYWORDS = ['if', 'dependentSchemas', 'patternProperties', 'unevaluatedProperties'];

/**
 * Looks a path up in a JSON schema. An object that lists its properties has no others, unless it
 * says so, because `zod` schemas drop them.
 */
export function lookUp(schema: JsonObject, path: string): SchemaPlace {
  let schemas = resolved([schema], schema);
  if (schemas === null) return { kind: 'open' };
  const done: string[] = [];
  for (const key of path === '' ? [] : path.split('.')) {
    const next: Json[] = [];
    const known: string[] = [];
    for (const one of schemas) {
      const inner = below(one, key);
      if (inner === 'open') return { kind: 'open' };
      if ('known' in inner) known.push(...inner.known);
      else next.push(inner.schema);
    }
    if (next.length === 0) {
      return { kind: 'missing', known: known.map((name) => [...done, name].join('.')) };
    }
    const found = resolved(next, schema);
    if (found === null) return { kind: 'open' };
    schemas = found;
    done.push(key);
  }
  return { kind: 'found', schemas };
}

type Below = 'open' | { readonly schema: Json } | { readonly known: readonly string[] };

function below(schema: JsonObject, key: string): Below {
  if (isAnything(schema) || OPEN_KEYWORDS.some((word) => Object.hasOwn(schema, word)))
    return 'open';
  const { properties = {}, additionalProperties, items, prefixItems } = schema;
  if (isSchema(properties) && Object.hasOwn(properties, key)) {
    return { schema: properties[key] ?? true };
  }
  if (/^\d+$/.test(key) && typesOf(schema)?.has('array') === true) {
    const own = Array.isArray(prefixItems) ? prefixItems[Number(key)] : undefined;
    return { schema: own ?? items ?? true };
  }
  if (additionalProperties === true) return 'open';
  if (isSchema(additionalProperties)) return { schema: additionalProperties };
  const hasNoList = schema['properties'] === undefined && additionalProperties === undefined;
  if (typesOf(schema)?.has('object') === true && hasNoList) return 'open';
  const known = isSchema(properties) ? Object.keys(properties) : [];
  return { known: typesOf(schema)?.has('array') === true ? [...known, '0'] : known };
}

/** Returns the JSON types that the schemas allow, with integers as numbers; null for any. */
export function jsonTypes(schemas: readonly JsonObject[]): ReadonlySet<string> | null {
  const all = schemas.map(typesOf);
  if (all.includes(null)) return null;
  return new Set(all.flatMap((types) => [...(types ?? [])]));
}

function typesOf({
  type,
  properties,
  items,
  enum: list,
  const: only,
}: JsonObject): Set<string> | null {
  const given = typeof type === 'string' ? [type] : Array.isArray(type) ? type : null;
  if (given !== null) {
    return new Set(given.map((name) => (name === 'integer' ? 'number' : String(name))));
  }
  const values = Array.isArray(list) ? list : only === undefined ? null : [only];
  if (values !== null) return new Set(values.map(jsonType));
  if (properties !== undefined) return new Set(['object']);
  return items === undefined ? null : new Set(['array']);
}

/** Returns the name that JSON schema has for the type of a value; integers are numbers. */
export function jsonType(value: Json): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isAnything(schema: JsonObject): boolean {
  return typesOf(schema) === null;
}

/**
 * Follows references and lists the parts of combinations. Returns null if one of them is anything,
 * or cannot be followed.
 */
function resolved(schemas: readonly Json[], root: JsonObject): readonly JsonObject[] | null {
  const found: JsonObject[] = [];
  const seen = new Set<Json>();
  const queue = [...schemas];
  for (let at = 0; at < queue.length; at += 1) {
    const schema = queue[at];
    if (schema === undefined || schema === false || seen.has(schema)) continue;
    if (!isSchema(schema) || queue.length > MAX_SCHEMAS) return null;
    seen.add(schema);
    const { $ref } = schema;
    if (typeof $ref === 'string') {
      const target = referenced($ref, root);
      if (target === undefined) return null;
      queue.push(target);
      continue;
    }
    const parts = COMBINATIONS.flatMap((word) => {
      const list = schema[word];
      return Array.isArray(list) ? list : [];
    });
    queue.push(...parts);
    // The parts of a combination say more than the schema around them.
    if (parts.length === 0 || !isAnything(schema)) found.push(schema);
  }
  return found.some(isAnything) ? null : found;
}

function referenced(reference: string, root: JsonObject): Json | undefined {
  if (!reference.startsWith('#')) return undefined;
  const keys = reference.split('/').slice(1);
  return keys.reduce<Json | undefined>((inner, key) => {
    const name = key.replaceAll('~1', '/').replaceAll('~0', '~');
    return isSchema(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined;
  }, root);
}

/** Whether a value is a JSON schema with keywords. */
export function isSchema(value: unknown): value is JsonObject {
  return isObject(value);
}
