import { canonicalJson, isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import {
  allowsNull,
  listAlternativeNodes,
  isNode,
  listNamedNodes,
  listNodes,
  resolveNode,
  listTexts,
  type NodeBudget,
} from './schema-node.js';

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
  if (!isJsonObject(value)) return value;
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
  if (!isJsonObject(value)) return false;
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

function isJsonObject(value: Json): value is JsonObject {
  return isObject(value);
}

function hasKeysOf(value: Json, node: JsonObject): boolean {
  if (!isJsonObject(value)) return true;
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
