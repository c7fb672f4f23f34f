import { canonicalJson, isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import {
  allowsNull,
  alternativesOf,
  isNode,
  namedNodes,
  nodesOf,
  resolveNode,
  textsOf,
} from './schema-node.js';

/**
 * The value without the nulls that stand for absent keys: in the strict form a model cannot leave a
 * key out, so it writes null where the schema has an optional key that is never null. All else stays.
 */
export function withoutAbsentNulls(value: Json, schema: JsonObject): Json {
  return walk(value, schema, schema);
}

function walk(value: Json, schema: JsonObject, root: JsonObject): Json {
  const node = alternativeFor(value, resolveNode(schema, root), root);
  if (Array.isArray(value)) {
    const places = nodesOf(node['prefixItems']);
    return value.map((item: Json, index) => {
      const each = places[index] ?? node['items'];
      return isNode(each) ? walk(item, each, root) : item;
    });
  }
  if (!isJsonObject(value)) return value;
  const properties = new Map(namedNodes(node['properties']));
  const required = new Set(textsOf(node['required']));
  const others = node['additionalProperties'];
  const kept = Object.entries(value).flatMap(([key, item]): [string, Json | undefined][] => {
    const property = properties.get(key) ?? (isNode(others) ? others : undefined);
    if (property === undefined || item === undefined) return [[key, item]];
    const absent = item === null && properties.has(key) && !required.has(key);
    if (absent && !allowsNull(property, root)) return [];
    return [[key, walk(item, property, root)]];
  });
  return Object.fromEntries(kept);
}

/** The alternative of a union that a value was written for: by its kind, its constants, its keys. */
function alternativeFor(value: Json, node: JsonObject, root: JsonObject, depth = 0): JsonObject {
  const alternatives = alternativesOf(node)
    .map((each) => resolveNode(each, root))
    .filter((each) => fits(value, each, root));
  const [first] = alternatives;
  if (first === undefined || depth > 10) return node;
  const best = alternatives.find((each) => hasTheKeysOf(value, each)) ?? first;
  return alternativeFor(value, best, root, depth + 1);
}

function fits(value: Json, node: JsonObject, root: JsonObject): boolean {
  const { type } = node;
  if (Array.isArray(value)) return type === 'array' || type === undefined;
  if (!isJsonObject(value)) return false;
  if (type !== 'object' && type !== undefined) return false;
  return namedNodes(node['properties']).every(([key, property]) => {
    const { const: constant, enum: values } = resolveNode(property, root);
    const item = value[key];
    if (item === undefined || item === null) return true;
    if (constant !== undefined) return canonicalJson(constant) === canonicalJson(item);
    return !Array.isArray(values) || values.includes(item);
  });
}

function hasTheKeysOf(value: Json, node: JsonObject): boolean {
  if (!isJsonObject(value)) return true;
  const names = namedNodes(node['properties']).map(([name]) => name);
  return (
    textsOf(node['required']).every((name) => Object.hasOwn(value, name)) &&
    Object.keys(value).every((key) => names.includes(key))
  );
}

function isJsonObject(value: Json): value is JsonObject {
  return isObject(value);
}
