import { z } from 'zod';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  isObject,
  isRecord,
} from '../core/text/json.js';
import { orderedKeywords, writtenSchema } from '../tools/arguments/check-arguments.js';
import { checkBySchema } from './schema-check.js';

/** The schema of an answer as data. */
export interface OutputSchema {
  /** The JSON schema of an object, with optional keys left optional. */
  readonly schema: JsonObject;
  /**
   * True if the author's schema is not an object schema. The answer is then written as `{"value":
   * …}`.
   */
  readonly wrapped: boolean;
}

/** The description of a wrapped schema, for the model and for `isWrapped`. */
const WRAPPED = 'The answer is in "value".';

const known = new WeakMap<z.ZodType, OutputSchema>();

/**
 * Creates the JSON schema of an answer as the model writes it, before transforms. Its root is
 * always an object, since no provider enforces anything else.
 *
 * Throws an `InputError` that names each path that JSON schema cannot express.
 */
export function outputSchema(type: z.ZodType): OutputSchema {
  const cached = known.get(type);
  if (cached !== undefined) return cached;
  const root = inlineRoot(writtenSchema(type, 'output'));
  const created =
    root['type'] === 'object'
      ? { schema: root, wrapped: false }
      : { schema: wrap(type), wrapped: true };
  known.set(type, created);
  return created;
}

/**
 * Inlines the root: a type with its own id becomes a reference, which no provider accepts there.
 */
function inlineRoot(schema: JsonObject): JsonObject {
  const { $ref, ...rest } = schema;
  const name = typeof $ref === 'string' ? /^#\/\$defs\/(.+)$/.exec($ref)?.[1] : undefined;
  const definitions = rest['$defs'];
  if (name === undefined || !isRecord(definitions)) return schema;
  const root = definitions[name];
  return isRecord(root) ? orderedKeywords({ ...root, ...rest }) : schema;
}

function wrap(type: z.ZodType): JsonObject {
  const schema = writtenSchema(z.strictObject({ value: type }), 'output');
  return orderedKeywords({ ...schema, required: ['value'], description: WRAPPED });
}

/** Registers the schema that a type was made from, for `outputSchema` and parsing. */
function registerSchema(type: z.ZodType, schema: OutputSchema): void {
  known.set(type, schema);
}

/** Returns true if a schema of `outputSchema` is wrapped. */
export function isWrapped(schema: JsonObject): boolean {
  return schema['description'] === WRAPPED;
}

const MAX_HOPS = 20;

/**
 * How many more nodes of schema and value may be visited; references can make a small schema
 * infinite.
 */
interface NodeBudget {
  left: number;
}

const NULL_BUDGET = 1_000;

export function isNode(value: Json | undefined): value is JsonObject {
  return isObject(value);
}

/** Lists the schemas of a keyword such as `anyOf` or `prefixItems`; empty if it is absent. */
export function listNodes(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter((item: Json) => isNode(item)) : [];
}

/**
 * Lists the schemas of a keyword such as `properties` or `$defs` by name; empty if it is absent.
 */
export function listNamedNodes(value: Json | undefined): [string, JsonObject][] {
  if (!isNode(value)) return [];
  return Object.entries(value).filter((entry): entry is [string, JsonObject] => isNode(entry[1]));
}

export function listTexts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item: Json) => typeof item === 'string') : [];
}

/** Lists the alternatives of a union, whether `anyOf` or `oneOf`. */
function listAlternativeNodes(node: JsonObject): JsonObject[] {
  return listNodes(node['anyOf'] ?? node['oneOf']);
}

/** Follows references (`#`, `#/$defs/Name`) within `root`; a dangling one allows any value. */
export function resolveNode(node: JsonObject, root: JsonObject): JsonObject {
  let current = node;
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const reference = current['$ref'];
    if (typeof reference !== 'string') return current;
    current = findTarget(reference, root);
  }
  return {};
}

function findTarget(reference: string, root: JsonObject): JsonObject {
  let current: Json | undefined = root;
  for (const step of reference.split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    current = isNode(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return isNode(current) ? current : {};
}

/** Returns true if the schema accepts null, or if that takes too long to find out. */
export function allowsNull(
  node: JsonObject,
  root: JsonObject,
  { depth = 0, budget = { left: NULL_BUDGET } }: { depth?: number; budget?: NodeBudget } = {},
): boolean {
  budget.left -= 1;
  if (budget.left < 0) return true;
  const { type, enum: values, const: constant, not } = resolveNode(node, root);
  if (not !== undefined || depth > MAX_HOPS) return false;
  if (constant !== undefined) return constant === null;
  if (Array.isArray(values)) return values.includes(null);
  if (type !== undefined) return type === 'null' || (Array.isArray(type) && type.includes('null'));
  const alternatives = listAlternativeNodes(resolveNode(node, root));
  return (
    alternatives.length === 0 ||
    alternatives.some((each) => allowsNull(each, root, { depth: depth + 1, budget }))
  );
}

/** The maximum number of value and schema nodes compared; beyond that, a value stays unchanged. */
const MAX_COMPARED_NODES = 100_000;
/** The maximum number of nodes visited to decide on a single null. */
const MAX_NODES_PER_NULL = 1_000;

interface Walk {
  readonly root: JsonObject;
  readonly budget: NodeBudget;
}

/**
 * Removes the nulls that stand for absent keys: in strict mode a model cannot leave a key out, so
 * it writes null for an optional key that is never null. Everything else stays, including the rest
 * of a value that takes too long to compare.
 */
export function removeAbsentNulls(value: Json, schema: JsonObject): Json {
  return removeNulls(value, schema, { root: schema, budget: { left: MAX_COMPARED_NODES } });
}

function removeNulls(value: Json, schema: JsonObject, walk: Walk): Json {
  const { root, budget } = walk;
  budget.left -= 1;
  if (budget.left < 0) return value;
  const node = selectAlternative(value, resolveNode(schema, root), walk);
  if (Array.isArray(value)) {
    const places = listNodes(node['prefixItems']);
    return value.map((item: Json, index) => {
      const each = places[index] ?? node['items'];
      return isNode(each) ? removeNulls(item, each, walk) : item;
    });
  }
  if (!isRecord(value)) return value;
  const named = listNamedNodes(node['properties']);
  budget.left -= named.length;
  const properties = new Map(named);
  const required = new Set(listTexts(node['required']));
  const others = node['additionalProperties'];
  const entries = Object.entries(value).flatMap(([key, item]): [string, Json | undefined][] => {
    const property = properties.get(key) ?? (isNode(others) ? others : undefined);
    if (property === undefined || item === undefined) return [[key, item]];
    const isOmissible = item === null && properties.has(key) && !required.has(key);
    if (isOmissible && !mayBeNull(property, walk)) return [];
    return [[key, removeNulls(item, property, walk)]];
  });
  return Object.fromEntries(entries);
}

/**
 * Selects the alternative of a union that a value was written for, by its type, constants, and
 * keys.
 */
function selectAlternative(value: Json, node: JsonObject, walk: Walk, depth = 0): JsonObject {
  const { root, budget } = walk;
  const all = listAlternativeNodes(node);
  budget.left -= all.length;
  if (budget.left < 0) return node;
  const alternatives = all
    .map((each) => resolveNode(each, root))
    .filter((each) => fits(value, each, walk));
  const [first] = alternatives;
  if (first === undefined || depth > 10) return node;
  const best = alternatives.find((each) => hasKeysOf(value, each)) ?? first;
  return selectAlternative(value, best, walk, depth + 1);
}

function fits(value: Json, node: JsonObject, { root, budget }: Walk): boolean {
  const { type } = node;
  if (Array.isArray(value)) return type === 'array' || type === undefined;
  if (!isRecord(value)) return false;
  if (type !== 'object' && type !== undefined) return false;
  const properties = listNamedNodes(node['properties']);
  budget.left -= properties.length;
  return properties.every(([key, property]) => {
    const { const: constant, enum: values } = resolveNode(property, root);
    const item = value[key];
    if (item === undefined || item === null) return true;
    if (constant !== undefined) return canonicalJson(constant) === canonicalJson(item);
    return !Array.isArray(values) || values.includes(item);
  });
}

function hasKeysOf(value: Json, node: JsonObject): boolean {
  if (!isRecord(value)) return true;
  const names = new Set(listNamedNodes(node['properties']).map(([name]) => name));
  return (
    listTexts(node['required']).every((name) => Object.hasOwn(value, name)) &&
    Object.keys(value).every((key) => names.has(key))
  );
}

function mayBeNull(node: JsonObject, { root, budget }: Walk): boolean {
  const own = { left: Math.min(MAX_NODES_PER_NULL, budget.left) };
  budget.left -= own.left;
  const allowed = allowsNull(node, root, { budget: own });
  budget.left += Math.max(own.left, 0);
  return allowed;
}

/** The patterns of zod's own formats, which are known to be fast. */
const OWN: ReadonlySet<string> = new Set(
  Object.values(z.regexes).flatMap((each) => (each instanceof RegExp ? [each.source] : [])),
);
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/**
 * Converts a pinned JSON schema to a zod type. zod would run its patterns on the worker's only
 * thread, so patterns other than zod's own are checked in the thread for untrusted schemas; parsing
 * must be async. A pattern that takes too long there is not enforced. Throws for a schema that
 * cannot be read.
 */
export function toZodType(schema: JsonObject): z.ZodType {
  const found: string[] = [];
  const plain = without(schema, (key, text) => {
    const isForeign = key === 'pattern' && !OWN.has(text);
    if (isForeign) found.push(text);
    return isForeign;
  });
  if (found.length === 0) return z.fromJSONSchema(schema);
  // zod checks formats; the other validator interprets them differently.
  const patterns = without(schema, (key, text) => {
    return key === 'format' || (key === 'pattern' && OWN.has(text));
  });
  return z.fromJSONSchema(plain).superRefine(async (value, context) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was read from JSON
    const fault = await checkBySchema(patterns, value as Json, 'the value');
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/** Returns the schema without the keywords that `drop` selects by their text. */
function without(node: JsonObject, drop: (key: string, text: string) => boolean): JsonObject {
  const entries = Object.entries(node).flatMap(([key, value]): [string, Json | undefined][] => {
    if (typeof value === 'string') return drop(key, value) ? [] : [[key, value]];
    return [[key, DATA.has(key) || value === undefined ? value : inside(value, drop)]];
  });
  return Object.fromEntries(entries);
}

function inside(value: Json, drop: (key: string, text: string) => boolean): Json {
  if (Array.isArray(value)) return value.map((item: Json) => inside(item, drop));
  return isRecord(value) ? without(value, drop) : value;
}

/**
 * Restores a zod type from the schema that a run has pinned (`outputSchema(…).schema`), for a
 * worker whose agent has changed since. It checks shapes; refinements and transforms are code and
 * are lost.
 *
 * Throws an `Error` if the JSON schema cannot be read, since an answer must not pass unchecked.
 */
export function restorePinnedSchema(schema: JsonObject): z.ZodType {
  const wrapped = isWrapped(schema);
  const type = toZodType(expand(wrapped ? getInner(schema) : schema));
  registerSchema(type, { schema, wrapped });
  return type;
}

/** Expands the short forms that zod writes but does not read. */
function expand(node: JsonObject): JsonObject {
  const entries = Object.entries(node).map(([key, value]): [string, Json | undefined] => {
    if (key === 'properties' || key === '$defs') {
      return [
        key,
        Object.fromEntries(listNamedNodes(value).map(([name, each]) => [name, expand(each)])),
      ];
    }
    if (key === 'allOf') return [key, listNodes(value).map((each) => addType(node, expand(each)))];
    if (['anyOf', 'oneOf', 'prefixItems'].includes(key)) {
      return [key, listNodes(value).map((each) => expand(each))];
    }
    const holdsSchema = key === 'items' || key === 'additionalProperties';
    return [key, holdsSchema && isNode(value) ? expand(value) : value];
  });
  return addProperties(Object.fromEntries(entries));
}

/** Adds the outer type, since zod reads an `allOf` of bare patterns as any value. */
function addType(outer: JsonObject, part: JsonObject): JsonObject {
  const { type } = outer;
  return type === undefined || part['type'] !== undefined ? part : { ...part, type };
}

/** Adds the keys that a record over an enum requires but does not list in its properties. */
function addProperties(node: JsonObject): JsonObject {
  const others = node['additionalProperties'];
  const required = listTexts(node['required']);
  if (node['properties'] !== undefined || !isNode(others) || required.length === 0) return node;
  return { ...node, properties: Object.fromEntries(required.map((name) => [name, others])) };
}

/** Returns the schema of `value`, with the definitions that its references need. */
function getInner(schema: JsonObject): JsonObject {
  const inner = new Map(listNamedNodes(schema['properties'])).get('value') ?? {};
  return schema['$defs'] === undefined ? inner : { ...inner, $defs: schema['$defs'] };
}
