import type { Json, JsonObject } from '../core/json.js';
import { orderedKeywords, schemaPath } from '../tools/arguments/written-schema.js';
import { allowsNull, isNode, namedNodes, nodesOf, textsOf } from './schema-node.js';

export type StrictSchema =
  | { readonly ok: true; readonly schema: JsonObject }
  /** Why there is no strict form: one text for each path at fault. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Keywords that the strict form takes as they are; all others are left out or explained in words. */
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
 * The strict form of an answer's schema, which OpenAI enforces while the model writes: every key is
 * required and null stands for an optional one, no other keys, `anyOf` for unions. Lengths and
 * defaults, which it does not know, are told in words; the answer is checked against all of it anyway.
 *
 * Not everything has such a form: objects with free keys, tuples, values of any kind. The caller may
 * send the schema itself then, not to be enforced strictly.
 */
export function strictSchema(schema: JsonObject): StrictSchema {
  const walk: Walk = { root: schema, problems: [] };
  const { default: _ofNoKey, ...body } = schema;
  const strict = strictNode(body, [], walk);
  const definitions = namedNodes(schema['$defs']).map(([name, node]) => {
    return [name, strictNode(node, ['$defs', name], walk)] as const;
  });
  const whole = definitions.length === 0 ? {} : { $defs: Object.fromEntries(definitions) };
  const result = orderedKeywords({ ...strict, ...whole });
  const problems = [...walk.problems, ...strictLimits(result)];
  return problems.length > 0 ? { ok: false, problems } : { ok: true, schema: result };
}

function strictNode(node: JsonObject, path: Path, walk: Walk): JsonObject {
  // Beside a reference nothing else may stand.
  if (node['$ref'] !== undefined) return { $ref: node['$ref'] };
  const impossible = reasonAgainst(node);
  if (impossible !== undefined) {
    walk.problems.push(`${schemaPath(path) || 'the whole answer'}: ${impossible}`);
    return {};
  }
  const kept = Object.entries(node).filter(([key]) => KEPT.has(key));
  return {
    ...Object.fromEntries(kept),
    ...textRules(node),
    ...inWords(node),
    ...(node['type'] === 'object' && strictObject(node, path, walk)),
    ...(isNode(node['items']) && { items: strictNode(node['items'], [...path, 'items'], walk) }),
    ...strictUnion(node, path, walk),
  };
}

function reasonAgainst(node: JsonObject): string | undefined {
  if (node['prefixItems'] !== undefined) return 'a tuple; use an object with a key for each place';
  if (node['patternProperties'] !== undefined) return 'keys by pattern; use an array of objects';
  const others = node['additionalProperties'];
  if (isNode(others) || others === true) {
    return 'keys that are not named; name them, or use an array of objects';
  }
  if (node['not'] !== undefined) return 'nothing is allowed there; leave it out';
  const parts = nodesOf(node['allOf']);
  if (parts.some((part) => Object.keys(part).some((key) => key !== 'pattern'))) {
    return 'an intersection; use one object';
  }
  const kinds = ['type', 'enum', 'const', 'anyOf', 'oneOf'];
  if (kinds.every((key) => node[key] === undefined)) return 'a value of any kind; say which';
  return node['type'] === 'array' && !isNode(node['items'])
    ? 'items of any kind; say which'
    : undefined;
}

function strictObject(node: JsonObject, path: Path, walk: Walk): JsonObject {
  const required = new Set(textsOf(node['required']));
  const properties = namedNodes(node['properties']).map(([name, property]) => {
    const strict = strictNode(property, [...path, 'properties', name], walk);
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
  return Object.keys(node).length === 1 && 'anyOf' in node ? nodesOf(node['anyOf']) : undefined;
}

function strictUnion(node: JsonObject, path: Path, walk: Walk): JsonObject {
  const alternatives = nodesOf(node['anyOf'] ?? node['oneOf']);
  if (alternatives.length === 0) return {};
  return {
    anyOf: alternatives.map((each, index) => strictNode(each, [...path, 'anyOf', index], walk)),
  };
}

/** A known format says more than the pattern that zod puts beside it; look-arounds are not taken. */
function textRules({ format, pattern }: JsonObject): JsonObject {
  if (typeof format === 'string' && FORMATS.has(format)) return { format };
  if (typeof pattern !== 'string' || /\(\?<?[=!]|\\[1-9]/.test(pattern)) return {};
  return { pattern };
}

function inWords(node: JsonObject): JsonObject {
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

/** What OpenAI takes of a strict schema as a whole, definitions included. */
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

/** In what a strict schema is too large; empty where it is not. */
function strictLimits(schema: JsonObject): string[] {
  const size = sizeOf(schema);
  return [
    ...over('keys', size.keys, MAX_KEYS),
    ...over('levels of objects', size.levels, MAX_LEVELS),
    ...over('enum values', size.enumValues, MAX_ENUM_VALUES),
    ...over('characters in names and values', size.text, MAX_TEXT),
  ];
}

function over(what: string, count: number, most: number): string[] {
  return count > most ? [`the whole answer: ${count} ${what}; at most ${most} are taken`] : [];
}

function sizeOf(node: JsonObject): Size {
  const named = [...namedNodes(node['properties']), ...namedNodes(node['$defs'])];
  const items = isNode(node['items']) ? [node['items']] : [];
  const inner = [...named.map(([, each]) => each), ...items, ...nodesOf(node['anyOf'])];
  const sizes = inner.map((each) => sizeOf(each));
  const values = Array.isArray(node['enum']) ? node['enum'] : [];
  const constant = node['const'] === undefined ? [] : [node['const']];
  const sum = (of: (size: Size) => number): number =>
    sizes.reduce((total, size) => total + of(size), 0);
  return {
    keys: namedNodes(node['properties']).length + sum((size) => size.keys),
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
