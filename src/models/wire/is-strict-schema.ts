import { isObject } from '../../core/json.js';

/** The keywords that OpenAI's strict mode accepts. */
const KEYWORDS = new Set(
  (
    '$ref $defs anyOf type properties required additionalProperties items enum const description ' +
    'title pattern format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems'
  ).split(' '),
);

type Node = Record<string, unknown>;

/**
 * Returns true if OpenAI's strict mode accepts the schema: an object at the root, every property
 * required and no others, a type at each place, and no unions but `anyOf`, whose objects differ in
 * their first properties. Any other schema is sent without `strict`, because a server would refuse
 * it, or allow only empty objects where any are meant.
 */
export function isStrictSchema(schema: Node): boolean {
  if (schema['type'] !== 'object' || 'anyOf' in schema) return false;
  const waiting: unknown[] = [schema];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (!isObject(node) || !isStrictNode(node, schema)) return false;
    waiting.push(...listChildren(node));
  }
  return true;
}

function isStrictNode(node: Node, root: Node): boolean {
  if (Object.keys(node).some((keyword) => !KEYWORDS.has(keyword))) return false;
  const { $ref: reference, type, properties, anyOf, items } = node;
  if (reference !== undefined) return Object.keys(node).length === 1;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (type === undefined && anyOf === undefined) return false;
  if (types.includes('array') && !isObject(items)) return false;
  if (Array.isArray(anyOf) && !areDistinct(anyOf, root)) return false;
  if (!types.includes('object') && properties === undefined) return true;
  const required: readonly unknown[] = Array.isArray(node['required']) ? node['required'] : [];
  const names = isObject(properties) ? Object.keys(properties) : [];
  return node['additionalProperties'] === false && names.every((name) => required.includes(name));
}

/** Whether no two objects of a union begin with the same property, unless it tells them apart. */
function areDistinct(alternatives: readonly unknown[], root: Node): boolean {
  const begins = alternatives.flatMap((one) => beginOf(one, root));
  const open = begins.filter(({ constant }) => constant === undefined).map(({ name }) => name);
  const named = begins.filter(({ constant }) => constant !== undefined);
  return (
    new Set(open).size === open.length &&
    named.every(({ name }) => !open.includes(name)) &&
    new Set(named.map((one) => JSON.stringify(one))).size === named.length
  );
}

/** The first property of an object schema, and its only value, if it has one. */
interface Begin {
  readonly name: string;
  readonly constant: unknown;
}

function beginOf(node: unknown, root: Node): readonly Begin[] {
  const reference = isObject(node) ? node['$ref'] : undefined;
  const name = typeof reference === 'string' ? reference.replace(/^#\/\$defs\//, '') : '';
  const target = isObject(root['$defs']) ? root['$defs'][name] : undefined;
  const whole = reference === '#' ? root : (target ?? node);
  const properties = isObject(whole) ? whole['properties'] : undefined;
  const [begin] = isObject(properties) ? Object.entries(properties) : [];
  if (begin === undefined) return [];
  const { const: constant, enum: values } = isObject(begin[1]) ? begin[1] : {};
  const only: unknown = Array.isArray(values) && values.length === 1 ? values[0] : undefined;
  return [{ name: begin[0], constant: constant ?? only }];
}

function listChildren(node: Node): readonly unknown[] {
  const named = ['properties', '$defs'].flatMap((keyword) => {
    const schemas = node[keyword];
    return isObject(schemas) ? Object.values(schemas) : [];
  });
  const { items, anyOf } = node;
  return [
    ...named,
    ...(items === undefined ? [] : [items]),
    ...(Array.isArray(anyOf) ? anyOf : []),
  ];
}
