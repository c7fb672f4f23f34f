import { type Json, type JsonObject, isRecord } from '../text/json.js';
import { show } from '../text/text.js';
import type { Predicate } from './predicate.js';

/** What a JSON schema says about a path, as predicates write it: `items.0.price`. */
type SchemaPlace =
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
function lookUp(schema: JsonObject, path: string): SchemaPlace {
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
  if (isRecord(properties) && Object.hasOwn(properties, key)) {
    return { schema: properties[key] ?? true };
  }
  if (/^\d+$/.test(key) && typesOf(schema)?.has('array') === true) {
    const own = Array.isArray(prefixItems) ? prefixItems[Number(key)] : undefined;
    return { schema: own ?? items ?? true };
  }
  if (additionalProperties === true) return 'open';
  if (isRecord(additionalProperties)) return { schema: additionalProperties };
  const hasNoList = schema['properties'] === undefined && additionalProperties === undefined;
  if (typesOf(schema)?.has('object') === true && hasNoList) return 'open';
  const known = isRecord(properties) ? Object.keys(properties) : [];
  return { known: typesOf(schema)?.has('array') === true ? [...known, '0'] : known };
}

/** Returns the JSON types that the schemas allow, with integers as numbers; null for any. */
function jsonTypes(schemas: readonly JsonObject[]): ReadonlySet<string> | null {
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
function jsonType(value: Json): string {
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
    if (!isRecord(schema) || queue.length > MAX_SCHEMAS) return null;
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
    return isRecord(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined;
  }, root);
}

/** A tool whose arguments a predicate tests. */
interface TestedTool {
  readonly name: string;
  /** JSON schemas of the forms in which the arguments are tested: as written, and as parsed. */
  readonly schemas: readonly JsonObject[];
  /** Returns the path that a wrong one may be a misspelling of. */
  readonly meantBy?: (path: string, known: readonly string[]) => string | undefined;
}

/** Maximum names that an error lists. */
const NAMED = 20;

/**
 * Returns why a condition of a valid predicate can never be true of a tool's arguments, because of
 * its path or its value; null if there is none. `at`: the field that holds the predicate.
 */
export function predicateMisfit(predicate: Predicate, tool: TestedTool, at: string): string | null {
  if ('not' in predicate) return predicateMisfit(predicate.not, tool, `${at}.not`);
  for (const list of ['all', 'any'] as const) {
    const inner: readonly Predicate[] | undefined = Reflect.get(predicate, list);
    if (inner === undefined) continue;
    const problems = inner.map((one, index) =>
      predicateMisfit(one, tool, `${at}.${list}[${index}]`),
    );
    return problems.find((problem) => problem !== null) ?? null;
  }
  return 'op' in predicate ? comparisonMisfit(predicate, tool, at) : null;
}

function comparisonMisfit(
  { op, path, value }: Extract<Predicate, { readonly op: unknown }>,
  { name, schemas: forms, meantBy }: TestedTool,
  at: string,
): string | null {
  const places = forms.map((schema) => lookUp(schema, path));
  if (places.some((place) => place.kind === 'open')) return null;
  const schemas = places.flatMap((place) => (place.kind === 'found' ? place.schemas : []));
  if (schemas.length === 0) {
    const known = places.flatMap((place) => (place.kind === 'missing' ? place.known : []));
    const all = [...new Set(known)];
    const meant = meantBy?.(path, all);
    const hint =
      meant === undefined
        ? `it has ${all.slice(0, NAMED).join(', ') || 'none'}`
        : `did you mean ${show(meant)}`;
    return `${at}.path: expected an argument of tool ${show(name)}, got ${show(path)} (${hint}); correct it`;
  }
  const types = jsonTypes(schemas);
  const where = `${show(path)} of tool ${show(name)}`;
  if (types !== null && (op === 'over' || op === 'under') && !types.has('number')) {
    return `${at}.op: expected "eq", "in", or "matches" for ${where}, which is no number, got "${op}"; correct \`op\` or \`path\``;
  }
  if (types !== null && op === 'matches' && !types.has('string')) {
    return `${at}.op: expected a comparison of a ${[...types].join(' or ')} for ${where}, got "matches", which tests texts; correct \`op\` or \`path\``;
  }
  const wanted = op === 'in' && Array.isArray(value) ? value : [value ?? null];
  if (!['eq', 'ne', 'in'].includes(op) || wanted.length === 0) return null;
  const wrong = wanted.find((one) => !isPossible(one, schemas));
  if (wrong === undefined) return null;
  return `${at}.value: expected a value that ${where} can have (${describe(schemas)}), got ${show(wrong)}; correct \`value\` or \`path\``;
}

function isPossible(value: Json, schemas: readonly JsonObject[]): boolean {
  return schemas.some((schema) => {
    const choices = choicesOf(schema);
    if (choices !== null)
      return choices.some((one) => JSON.stringify(one) === JSON.stringify(value));
    const types = jsonTypes([schema]);
    return types === null || types.has(jsonType(value));
  });
}

function describe(schemas: readonly JsonObject[]): string {
  const texts = schemas.map((schema) => {
    const choices = choicesOf(schema);
    if (choices !== null) return choices.map((one) => JSON.stringify(one)).join(', ');
    return [...(jsonTypes([schema]) ?? ['anything'])].join(' or ');
  });
  return [...new Set(texts)].join(' or ').slice(0, 200);
}

function choicesOf({ enum: list, const: only }: JsonObject): readonly Json[] | null {
  if (Array.isArray(list)) return list;
  return only === undefined ? null : [only];
}
