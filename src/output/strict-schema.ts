import type { Json, JsonObject } from '../core/json.js';
import { orderedKeywords, schemaPath } from '../tools/arguments/written-schema.js';
import { allowsNull, isNode, listNamedNodes, listNodes, listTexts } from './schema-node.js';

export type StrictSchema =
  | { readonly ok: true; readonly schema: JsonObject }
  /** The reasons why there is no strict form, with one line for each path at fault. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Keywords that strict mode accepts; all others are omitted or described in words. */
const KEPT = new Set(
  (
    '$ref const description enum exclusiveMaximum exclusiveMinimum maxItems maximum minItems ' +
    'minimum multipleOf title type'
  ).split(' '),
);
const FORMATS = new Set('date date-time duration email hostname ipv4 ipv6 time uuid'.split(' '));

interface Walk {
  readonly root: JsonObject;
  readonly problems: string[];
}
type Path = readonly (string | number)[];

/**
 * Converts an answer's schema to the form that OpenAI enforces in strict mode: every key is
 * required, null stands for an absent optional key, other keys are refused, and unions are `anyOf`.
 * Lengths and defaults, which strict mode does not support, are described in words; the answer is
 * checked against the whole schema anyway.
 *
 * Objects with arbitrary keys, tuples, and values of any kind have no such form. The caller may
 * then send the schema itself, which is not enforced strictly.
 */
export function toStrictSchema(schema: JsonObject): StrictSchema {
  const walk: Walk = { root: schema, problems: [] };
  const { default: _default, ...body } = schema;
  const strict = convertNode(body, [], walk);
  const definitions = listNamedNodes(schema['$defs']).map(([name, node]) => {
    return [name, convertNode(node, ['$defs', name], walk)] as const;
  });
  const whole = definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) };
  const result = orderedKeywords({ ...strict, ...whole });
  const problems = [...walk.problems, ...checkSize(result)];
  return problems.length > 0 ? { ok: false, problems } : { ok: true, schema: result };
}

function convertNode(node: JsonObject, path: Path, walk: Walk): JsonObject {
  // A reference may not have sibling keywords.
  if (node['$ref'] !== undefined) return { $ref: node['$ref'] };
  const reason = findUnsupported(node);
  if (reason !== undefined) {
    walk.problems.push(`${schemaPath(path) || 'the whole answer'}: ${reason}`);
    return {};
  }
  const supported = Object.entries(node).filter(([key]) => KEPT.has(key));
  return {
    ...Object.fromEntries(supported),
    ...convertTextRules(node),
    ...describeInWords(node),
    ...(node['type'] === 'object' && convertObject(node, path, walk)),
    ...(isNode(node['items']) && { items: convertNode(node['items'], [...path, 'items'], walk) }),
    ...convertUnion(node, path, walk),
  };
}

function findUnsupported(node: JsonObject): string | undefined {
  if (node['prefixItems'] !== undefined) return 'a tuple; use an object with a key for each place';
  if (node['patternProperties'] !== undefined) return 'keys by pattern; use an array of objects';
  const others = node['additionalProperties'];
  if (isNode(others) || others === true) {
    return 'keys that are not named; name them, or use an array of objects';
  }
  if (node['not'] !== undefined) return 'nothing is allowed there; omit it';
  const parts = listNodes(node['allOf']);
  if (parts.some((part) => Object.keys(part).some((key) => key !== 'pattern'))) {
    return 'an intersection; use one object';
  }
  const kinds = ['type', 'enum', 'const', 'anyOf', 'oneOf'];
  if (kinds.every((key) => node[key] === undefined)) return 'a value of any kind; specify which';
  return node['type'] === 'array' && !isNode(node['items'])
    ? 'items of any kind; specify which'
    : undefined;
}

function convertObject(node: JsonObject, path: Path, walk: Walk): JsonObject {
  const required = new Set(listTexts(node['required']));
  const properties = listNamedNodes(node['properties']).map(([name, property]) => {
    const strict = convertNode(property, [...path, 'properties', name], walk);
    return [name, required.has(name) ? strict : nullable(strict, property, walk)] as const;
  });
  return {
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
    additionalProperties: false,
  };
}

function nullable(strict: JsonObject, property: JsonObject, { root }: Walk): JsonObject {
  if (allowsNull(property, root)) return strict;
  return { anyOf: [...(onlyUnion(strict) ?? [strict]), { type: 'null' }] };
}

function onlyUnion(node: JsonObject): JsonObject[] | undefined {
  return Object.keys(node).length === 1 && 'anyOf' in node ? listNodes(node['anyOf']) : undefined;
}

function convertUnion(node: JsonObject, path: Path, walk: Walk): JsonObject {
  const alternatives = listNodes(node['anyOf'] ?? node['oneOf']);
  if (alternatives.length === 0) return {};
  return {
    anyOf: alternatives.map((each, index) => convertNode(each, [...path, 'anyOf', index], walk)),
  };
}

/** Replaces the pattern that zod adds with a known format; lookarounds are not supported. */
function convertTextRules({ format, pattern }: JsonObject): JsonObject {
  if (typeof format === 'string' && FORMATS.has(format)) return { format };
  if (typeof pattern !== 'string' || /\(\?<?[=!]|\\[1-9]/.test(pattern)) return {};
  return { pattern };
}

function describeInWords(node: JsonObject): JsonObject {
  const { minLength, maxLength, default: fallback, description } = node;
  const words = [
    typeof description === 'string' ? description : '',
    minLength === undefined ? '' : `At least ${characters(minLength)}.`,
    maxLength === undefined ? '' : `At most ${characters(maxLength)}.`,
    fallback === undefined ? '' : `Null means ${JSON.stringify(fallback)}.`,
  ];
  const text = words.filter((each) => each !== '').join(' ');
  return text === '' ? {} : { description: text };
}

function characters(count: Json): string {
  return count === 1 ? '1 character' : `${JSON.stringify(count)} characters`;
}

/** OpenAI's limits for a strict schema as a whole, definitions included. */
const MAX_KEYS = 5_000;
const MAX_LEVELS = 10;
const MAX_ENUM_VALUES = 1_000;
const MAX_TEXT = 120_000;

interface Size {
  readonly keys: number;
  readonly levels: number;
  readonly enumValues: number;
  /** Characters of names and of enum and constant values. */
  readonly text: number;
}

/** Describes how a strict schema is too large; empty if it is not. */
function checkSize(schema: JsonObject): string[] {
  const size = measure(schema);
  return [
    ...over('keys', size.keys, MAX_KEYS),
    ...over('levels of objects', size.levels, MAX_LEVELS),
    ...over('enum values', size.enumValues, MAX_ENUM_VALUES),
    ...over('characters in names and values', size.text, MAX_TEXT),
  ];
}

function over(what: string, count: number, most: number): string[] {
  return count > most ? [`the whole answer: ${count} ${what}; at most ${most} are accepted`] : [];
}

function measure(node: JsonObject): Size {
  const named = [...listNamedNodes(node['properties']), ...listNamedNodes(node['$defs'])];
  const items = isNode(node['items']) ? [node['items']] : [];
  const inner = [...named.map(([, each]) => each), ...items, ...listNodes(node['anyOf'])];
  const sizes = inner.map((each) => measure(each));
  const values = Array.isArray(node['enum']) ? node['enum'] : [];
  const constant = node['const'] === undefined ? [] : [node['const']];
  const sum = (of: (size: Size) => number): number =>
    sizes.reduce((total, size) => total + of(size), 0);
  return {
    keys: listNamedNodes(node['properties']).length + sum((size) => size.keys),
    levels: Math.max(0, ...sizes.map((size) => size.levels)) + (node['type'] === 'object' ? 1 : 0),
    enumValues: values.length + sum((size) => size.enumValues),
    text:
      named.reduce((total, [name]) => total + name.length, 0) +
      [...values, ...constant].reduce<number>((total, each) => total + length(each), 0) +
      sum((size) => size.text),
  };
}

function length(value: Json): number {
  return typeof value === 'string' ? value.length : 0;
}
