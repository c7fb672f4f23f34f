import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';

const MAX_HOPS = 20;

/**
 * How many more nodes of schema and value may be visited; references can make a small schema
 * infinite.
 */
export interface NodeBudget {
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
export function listAlternativeNodes(node: JsonObject): JsonObject[] {
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
