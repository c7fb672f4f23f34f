import { isObject } from '../../core/json.js';

/** Keywords that a strict server refuses or ignores. */
const UNSUPPORTED = [
  'oneOf',
  'allOf',
  'not',
  'if',
  'patternProperties',
  'dependentRequired',
  'default',
];

/**
 * Returns true if OpenAI's strict mode accepts the schema: an object at the root, every property
 * required, no additional ones, and no unions but `anyOf`. Any other schema is sent without
 * `strict`.
 */
export function isStrictSchema(schema: Record<string, unknown>): boolean {
  if (schema['type'] !== 'object') return false;
  const waiting: unknown[] = [schema];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (!isObject(node)) continue;
    if (!isStrictNode(node)) return false;
    waiting.push(...listChildren(node).filter(isObject));
  }
  return true;
}

function isStrictNode(node: Record<string, unknown>): boolean {
  if (UNSUPPORTED.some((keyword) => keyword in node)) return false;
  const properties = node['properties'];
  if (node['type'] !== 'object' && properties === undefined) return true;
  const required: readonly unknown[] = Array.isArray(node['required']) ? node['required'] : [];
  const names = isObject(properties) ? Object.keys(properties) : [];
  return node['additionalProperties'] === false && names.every((name) => required.includes(name));
}

function listChildren(node: Record<string, unknown>): readonly unknown[] {
  const named = ['properties', '$defs', 'definitions'].flatMap((keyword) => {
    const schemas = node[keyword];
    return isObject(schemas) ? Object.values(schemas) : [];
  });
  const { items, anyOf, prefixItems } = node;
  const listed = [anyOf, prefixItems].flatMap((schemas) => (Array.isArray(schemas) ? schemas : []));
  return [...named, items, ...listed];
}
