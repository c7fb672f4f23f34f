import type { z } from 'zod';
import type { Json, JsonObject } from '../core/json.js';
import { typeOfPinned } from './foreign-patterns.js';
import { isWrapped, rememberSchema } from './output-schema.js';
import { isNode, namedNodes, nodesOf, textsOf } from './schema-node.js';

/**
 * A schema made of the one that a run has pinned (`outputSchema(…).schema`), for a worker whose agent
 * has moved on. It checks shapes; refinements and transforms were code, and are not in it.
 *
 * Throws when the JSON schema cannot be read: an answer must not pass unchecked.
 */
export function pinnedSchema(schema: JsonObject): z.ZodType {
  const wrapped = isWrapped(schema);
  const type = typeOfPinned(readable(wrapped ? innerOf(schema) : schema));
  rememberSchema(type, { schema, wrapped });
  return type;
}

/** The schema in `value`; references to definitions still need them beside it. */
function innerOf(schema: JsonObject): JsonObject {
  const inner = new Map(namedNodes(schema['properties'])).get('value') ?? {};
  return schema['$defs'] === undefined ? inner : { ...inner, $defs: schema['$defs'] };
}

/** Says in full what zod writes in short, and overlooks when it reads it back. */
function readable(node: JsonObject): JsonObject {
  const entries = Object.entries(node).map(([key, value]): [string, Json | undefined] => {
    if (key === 'properties' || key === '$defs') {
      return [
        key,
        Object.fromEntries(namedNodes(value).map(([name, each]) => [name, readable(each)])),
      ];
    }
    if (key === 'allOf')
      return [key, nodesOf(value).map((each) => withTypeOf(node, readable(each)))];
    if (['anyOf', 'oneOf', 'prefixItems'].includes(key)) {
      return [key, nodesOf(value).map((each) => readable(each))];
    }
    const holdsSchema = key === 'items' || key === 'additionalProperties';
    return [key, holdsSchema && isNode(value) ? readable(value) : value];
  });
  return withNamedKeys(Object.fromEntries(entries));
}

/** `allOf` of bare patterns is read as anything. */
function withTypeOf(outer: JsonObject, part: JsonObject): JsonObject {
  const { type } = outer;
  return type === undefined || part['type'] !== undefined ? part : { ...part, type };
}

/** A record over an enum requires keys that it does not list as properties. */
function withNamedKeys(node: JsonObject): JsonObject {
  const others = node['additionalProperties'];
  const required = textsOf(node['required']);
  if (node['properties'] !== undefined || !isNode(others) || required.length === 0) return node;
  return { ...node, properties: Object.fromEntries(required.map((name) => [name, others])) };
}
