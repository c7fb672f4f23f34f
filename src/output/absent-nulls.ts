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
  type Budget,
} from './schema-node.js';

/** Nodes of value and schema that are compared; behind them a value stays as it is. */
const MOST_COMPARED = 100_000;
/** Of them, those that tell whether one null may stand. */
const MOST_FOR_NULL = 1_000;

interface Walk {
  readonly root: JsonObject;
  readonly budget: Budget;
}

/**
 * The value without the nulls that stand for absent keys: in the strict form a model cannot leave a
 * key out, so it writes null where the schema has an optional key that is never null. All else stays,
 * and so does what is left of a value that takes too long to compare.
 */
export function withoutAbsentNulls(value: Json, schema: JsonObject): Json {
  return walk(value, schema, { root: schema, budget: { left: MOST_COMPARED } });
}

function walk(value: Json, schema: JsonObject, on: Walk): Json {
  const { root, budget } = on;
  budget.left -= 1;
  if (budget.left < 0) return value;
  const node = alternativeFor(value, resolveNode(schema, root), on);
  if (Array.isArray(value)) {
    const places = nodesOf(node['prefixItems']);
    return value.map((item: Json, index) => {
      const each = places[index] ?? node['items'];
      return isNode(each) ? walk(item, each, on) : item;
    });
  }
  if (!isJsonObject(value)) return value;
  const named = namedNodes(node['properties']);
  budget.left -= named.length;
  const properties = new Map(named);
  const required = new Set(textsOf(node['required']));
  const others = node['additionalProperties'];
  const kept = Object.entries(value).flatMap(([key, item]): [string, Json | undefined][] => {
    const property = properties.get(key) ?? (isNode(others) ? others : undefined);
    if (property === undefined || item === undefined) return [[key, item]];
    const absent = item === null && properties.has(key) && !required.has(key);
    if (absent && !mayBeNull(property, on)) return [];
    return [[key, walk(item, property, on)]];
  });
  return Object.fromEntries(kept);
}

function mayBeNull(node: JsonObject, { root, budget }: Walk): boolean {
  const own = { left: Math.min(MOST_FOR_NULL, budget.left) };
  budget.left -= own.left;
  const allowed = allowsNull(node, root, { budget: own });
  budget.left += Math.max(own.left, 0);
  return allowed;
}

/** The alternative of a union that a value was written for: by its kind, its constants, its keys. */
function alternativeFor(value: Json, node: JsonObject, on: Walk, depth = 0): JsonObject {
  const { root, budget } = on;
  const all = alternativesOf(node);
  budget.left -= all.length;
  if (budget.left < 0) return node;
  const alternatives = all
    .map((each) => resolveNode(each, root))
    .filter((each) => fits(value, each, on));
  const [first] = alternatives;
  if (first === undefined || depth > 10) return node;
  const best = alternatives.find((each) => hasTheKeysOf(value, each)) ?? first;
  return alternativeFor(value, best, on, depth + 1);
}

function fits(value: Json, node: JsonObject, { root, budget }: Walk): boolean {
  const { type } = node;
  if (Array.isArray(value)) return type === 'array' || type === undefined;
  if (!isJsonObject(value)) return false;
  if (type !== 'object' && type !== undefined) return false;
  const properties = namedNodes(node['properties']);
  budget.left -= properties.length;
  return properties.every(([key, property]) => {
    const { const: constant, enum: values } = resolveNode(property, root);
    const item = value[key];
    if (item === undefined || item === null) return true;
    if (constant !== undefined) return canonicalJson(constant) === canonicalJson(item);
    return !Array.isArray(values) || values.includes(item);
  });
}

function hasTheKeysOf(value: Json, node: JsonObject): boolean {
  if (!isJsonObject(value)) return true;
  const names = new Set(namedNodes(node['properties']).map(([name]) => name));
  return (
    textsOf(node['required']).every((name) => Object.hasOwn(value, name)) &&
    Object.keys(value).every((key) => names.has(key))
  );
}

function isJsonObject(value: Json): value is JsonObject {
  return isObject(value);
}
