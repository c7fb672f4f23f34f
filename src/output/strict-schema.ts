import type { Json, JsonObject } from '../core/text/json.js';
import { orderedKeywords, schemaPath } from '../tools/arguments/check-arguments.js';
import {
  allowsNull,
  isNode,
  listNamedNodes,
  listNodes,
  listTexts,
  resolveNode,
} from './schemas.js';

type StrictSchema =
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
 * Objects with arbitrary keys (an object schema that names none is one), tuples, and values of any kind have no such form. The caller may
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

/** A schema as a part of a larger one. */
export interface SchemaPart {
  readonly schema: JsonObject;
  /** The definitions to which it refers, by names that begin with the part's prefix. */
  readonly definitions: readonly (readonly [string, JsonObject])[];
}

/**
 * Returns the strict form of a schema as a part of a larger one; a JSON text, which is described, if
 * it has no such form.
 */
export function strictPart(
  schema: JsonObject,
  { prefix, text }: { readonly prefix: string; readonly text: string },
): SchemaPart {
  const strict = toStrictSchema(schema);
  if (!strict.ok || JSON.stringify(strict.schema).includes('"$ref":"#"')) {
    return { schema: { type: 'string', description: text }, definitions: [] };
  }
  const { $defs, ...body } = strict.schema;
  return {
    schema: withPrefix(body, prefix),
    definitions: listNamedNodes($defs).map(
      ([name, node]) => [`${prefix}${name}`, withPrefix(node, prefix)] as const,
    ),
  };
}

/** Returns a strict schema whose references have a prefix. */
function withPrefix(node: JsonObject, prefix: string): JsonObject {
  const { $ref: reference, properties, items, anyOf } = node;
  if (typeof reference === 'string') {
    return { $ref: reference.replace('#/$defs/', `#/$defs/${prefix}`) };
  }
  const named = listNamedNodes(properties).map(([key, one]) => [key, withPrefix(one, prefix)]);
  return {
    ...node,
    ...(isNode(properties) && { properties: Object.fromEntries(named) }),
    ...(isNode(items) && { items: withPrefix(items, prefix) }),
    ...(anyOf !== undefined && { anyOf: listNodes(anyOf).map((one) => withPrefix(one, prefix)) }),
  };
}

function convertNode(given: JsonObject, path: Path, walk: Walk): JsonObject {
  const node = withoutTypeList(given);
  const reason = findUnsupported(node, walk.root);
  // A reference may not have sibling keywords.
  if (reason === undefined && node['$ref'] !== undefined) return { $ref: node['$ref'] };
  if (reason !== undefined) {
    walk.problems.push(`${schemaPath(path) || 'the whole answer'}: ${reason}`);
    return {};
  }
  const supported = Object.entries(node).filter(([key]) => KEPT.has(key));
  return {
    ...Object.fromEntries(supported),
    ...typeOfValues(node),
    ...convertTextRules(node),
    ...describeInWords(node),
    ...(node['type'] === 'object' && convertObject(node, path, walk)),
    ...(isNode(node['items']) && { items: convertNode(node['items'], [...path, 'items'], walk) }),
    ...convertUnion(node, path, walk),
  };
}

/** Returns a node with a list of types as a union, if one of the types has parts of its own. */
function withoutTypeList(node: JsonObject): JsonObject {
  const { type, description, ...rest } = node;
  const types = listTexts(type);
  if (!types.some((one) => one === 'object' || one === 'array')) return node;
  const alternatives = types.map((one) => ({
    ...(one === 'null' ? {} : rest),
    type: one,
  }));
  return { ...(description !== undefined && { description }), anyOf: alternatives };
}

/** Returns the types of the listed values, which strict mode requires. */
function typeOfValues({ type, enum: values, const: constant }: JsonObject): JsonObject {
  const given = Array.isArray(values) ? values : constant === undefined ? [] : [constant];
  if (type !== undefined || given.length === 0) return {};
  const types = [...new Set(given.map((one) => (one === null ? 'null' : typeof one)))];
  return { type: types.length === 1 ? (types[0] ?? 'null') : types };
}

function findUnsupported(node: JsonObject, root: JsonObject): string | undefined {
  const reference = node['$ref'];
  if (reference !== undefined) {
    const names = listNamedNodes(root['$defs']).map(([name]) => `#/$defs/${name}`);
    const isKnown = reference === '#' || names.some((name) => name === reference);
    return isKnown ? undefined : 'a reference to elsewhere; write the schema in its place';
  }
  if (node['prefixItems'] !== undefined) return 'a tuple; use an object with a key for each place';
  if (node['patternProperties'] !== undefined) return 'keys by pattern; use an array of objects';
  const others = node['additionalProperties'];
  if (isNode(others) || others === true) {
    return 'keys that are not named; name them, or use an array of objects';
  }
  const isUnion = node['anyOf'] !== undefined || node['oneOf'] !== undefined;
  if (node['type'] === 'object' && (isUnion || node['if'] !== undefined)) {
    return 'an object with alternatives; use a union of objects';
  }
  if (node['type'] === 'object' && others !== false && !isNode(node['properties'])) {
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
  const converted = alternatives.map((each, index) =>
    convertNode(each, [...path, 'anyOf', index], walk),
  );
  const anyOf = withDistinctBegins(converted, walk.root);
  if (anyOf !== null) return { anyOf };
  walk.problems.push(
    `${schemaPath(path) || 'the whole answer'}: objects that nothing tells apart; give each a property of its own`,
  );
  return { anyOf: converted };
}

/**
 * Returns the alternatives of a union so that no two objects begin with the same property, as
 * strict mode requires: the property that tells them apart comes first, or one that no other object
 * has. Null if there is none.
 */
function withDistinctBegins(
  alternatives: readonly JsonObject[],
  root: JsonObject,
): JsonObject[] | null {
  if (areDistinct(alternatives, root)) return [...alternatives];
  const objects = alternatives.filter(({ type }) => type === 'object');
  const names = objects.map(namesOf);
  const telling = names[0]?.find(
    (name) => new Set(objects.flatMap((one) => constantOf(one, name))).size === objects.length,
  );
  const arranged = alternatives.map((one) => {
    const own = objects.indexOf(one);
    const first =
      telling ??
      names[own]?.find((name) => names.every((all, index) => index === own || !all.includes(name)));
    return own < 0 || first === undefined ? one : withFirst(one, first);
  });
  return areDistinct(arranged, root) ? arranged : null;
}

/** Whether all objects begin with different properties, or with different constants. */
function areDistinct(alternatives: readonly JsonObject[], root: JsonObject): boolean {
  const begins = alternatives.flatMap((one) => {
    const object = resolveNode(one, root);
    const [begin] = namesOf(object);
    return begin === undefined ? [] : [{ begin, constant: constantOf(object, begin)[0] }];
  });
  return begins.every(({ begin, constant }, index) =>
    begins.every(
      (other, at) =>
        at === index ||
        other.begin !== begin ||
        (constant !== undefined && other.constant !== undefined && other.constant !== constant),
    ),
  );
}

function namesOf({ properties }: JsonObject): readonly string[] {
  return listNamedNodes(properties).map(([name]) => name);
}

/** Returns the only value of a property as JSON; an empty list if it may have several. */
function constantOf({ properties }: JsonObject, name: string): readonly string[] {
  const node = listNamedNodes(properties).find(([key]) => key === name)?.[1];
  const { const: constant, enum: values } = node ?? {};
  if (constant !== undefined) return [JSON.stringify(constant)];
  return Array.isArray(values) && values.length === 1 ? [JSON.stringify(values[0])] : [];
}

function withFirst(node: JsonObject, name: string): JsonObject {
  const named = listNamedNodes(node['properties']).toSorted(
    ([one], [other]) => Number(other === name) - Number(one === name),
  );
  return {
    ...node,
    properties: Object.fromEntries(named),
    required: named.map(([key]) => key),
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
