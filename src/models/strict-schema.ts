import { isObject } from '../core/json.js';

/** Keywords that a strict server refuses, or takes and does not keep to. */
const REFUSED = [
  'oneOf',
  'allOf',
  'not',
  'if',
  'patternProperties',
  'dependentRequired',
  'default',
];

function isStrictNode(node: Record<string, unknown>): boolean {
  if (REFUSED.some((keyword) => keyword in node)) return false;
  const properties = node['properties'];
  if (node['type'] !== 'object' && properties === undefined) return true;
  const required: readonly unknown[] = Array.isArray(node['required']) ? node['required'] : [];
  const names = isObject(properties) ? Object.keys(properties) : [];
  return node['additionalProperties'] === false && names.every((name) => required.includes(name));
}

/** The schemas directly within one. */
function within(node: Record<string, unknown>): readonly unknown[] {
  const named = ['properties', '$defs', 'definitions'].flatMap((keyword) => {
    const schemas = node[keyword];
    return isObject(schemas) ? Object.values(schemas) : [];
  });
  const { items, anyOf, prefixItems } = node;
  const listed = [anyOf, prefixItems].flatMap((schemas) => (Array.isArray(schemas) ? schemas : []));
  return [...named, items, ...listed];
}

/**
 * True when OpenAI's strict mode takes the schema: an object at the root, every property required,
 * no further ones, no alternatives but `anyOf`. Any other schema is sent without `strict`.
 */
export function isStrictSchema(schema: Record<string, unknown>): boolean {
  if (schema['type'] !== 'object') return false;
  const waiting: unknown[] = [schema];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (!isObject(node)) continue;
    if (!isStrictNode(node)) return false;
    waiting.push(...within(node).filter(isObject));
  }
  return true;
}
