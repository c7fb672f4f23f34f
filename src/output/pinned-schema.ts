import type { z } from 'zod';
import type { Json, JsonObject } from '../core/json.js';
import { toZodType } from './foreign-patterns.js';
import { isWrapped, registerSchema } from './output-schema.js';
import { isNode, listNamedNodes, listNodes, listTexts } from './schema-node.js';

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
