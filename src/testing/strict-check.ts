import { isObject, type JsonObject } from '../core/text/json.js';
import type { StubRequest } from './wire-input.js';

/** A schema that a request wants enforced. */
interface EnforcedSchema {
  /** As the provider names it: `response_format 'plan'`. */
  readonly name: string;
  /** The request's field. */
  readonly param: string;
  readonly schema: unknown;
}

type AnyObject = Readonly<Record<string, unknown>>;
type Place = readonly string[];

const KEYWORDS = new Set(
  (
    '$schema $ref $defs anyOf type properties required additionalProperties items enum const description ' +
    'title pattern format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems'
  ).split(' '),
);
const TYPES = new Set('string number boolean integer object array null'.split(' '));
const MAX_LEVELS = 10;
const MAX_PROPERTIES = 5_000;
const MAX_TEXT = 120_000;
const MAX_ENUM_VALUES = 1_000;

/** Returns the schema of the answer that a request wants enforced; undefined if there is none. */
export function answerFormat({ api, body }: StubRequest): EnforcedSchema | undefined {
  if (api === 'chat') {
    const format = fieldOf(body['response_format'], 'json_schema');
    if (fieldOf(format, 'strict') !== true) return undefined;
    return enforced('response_format', format);
  }
  if (api === 'messages') {
    const format = fieldOf(body['output_config'], 'format');
    if (fieldOf(format, 'type') !== 'json_schema') return undefined;
    const param = 'output_config.format.schema';
    return { name: param, param, schema: fieldOf(format, 'schema') };
  }
  const format = fieldOf(body['text'], 'format');
  return fieldOf(format, 'strict') === true ? enforced('text.format', format) : undefined;
}

function enforced(param: string, format: unknown): EnforcedSchema {
  const name = `${param} '${String(fieldOf(format, 'name'))}'`;
  return { name, param, schema: fieldOf(format, 'schema') };
}

/** Returns the schemas of the tools that a request wants enforced. */
function strictTools({ api, body }: StubRequest): readonly EnforcedSchema[] {
  const tools: readonly unknown[] = Array.isArray(body['tools']) ? body['tools'] : [];
  return tools.flatMap((tool, index): readonly EnforcedSchema[] => {
    const given = api === 'chat' ? fieldOf(tool, 'function') : tool;
    if (api === 'messages' || fieldOf(given, 'strict') !== true) return [];
    const name = `function '${String(fieldOf(given, 'name'))}'`;
    return [{ name, param: `tools[${index}].parameters`, schema: fieldOf(given, 'parameters') }];
  });
}

/**
 * Returns why a provider would answer 400 to a request, because a schema that it wants enforced is
 * outside the provider's subset; undefined if it would accept the schemas.
 */
export function strictFault(
  request: StubRequest,
): { readonly message: string; readonly param: string } | undefined {
  const format = answerFormat(request);
  if (request.api === 'messages') {
    const problem = format === undefined ? null : messagesProblem(format.schema);
    if (format === undefined || problem === null) return undefined;
    return { message: `${format.param}: ${problem}`, param: format.param };
  }
  for (const { name, param, schema } of [...(format ? [format] : []), ...strictTools(request)]) {
    const problem = strictProblem(schema);
    if (problem !== null) return { message: `Invalid schema for ${name}: ${problem}`, param };
  }
  return undefined;
}

interface Totals {
  properties: number;
  enumValues: number;
  text: number;
}

/** Returns why a schema is outside OpenAI's strict subset, in its words; null if it is inside. */
export function strictProblem(schema: unknown): string | null {
  if (!isObject(schema)) return 'schema must be a JSON schema object.';
  if (schema['type'] !== 'object') return `schema must be of type "object".`;
  if (schema['anyOf'] !== undefined) return 'the root must not be "anyOf".';
  const definitions = isObject(schema['$defs']) ? schema['$defs'] : {};
  const totals: Totals = { properties: 0, enumValues: 0, text: 0 };
  const walk = { root: schema, totals };
  const problem =
    nodeProblem(schema, { ...walk, at: [], level: 1 }) ??
    first(Object.entries(definitions), ([name, node]) => {
      totals.text += name.length;
      return nodeProblem(node, { ...walk, at: ['$defs', name], level: 1 });
    });
  if (problem !== null) return problem;
  if (totals.properties > MAX_PROPERTIES) return `more than ${MAX_PROPERTIES} properties.`;
  if (totals.enumValues > MAX_ENUM_VALUES) return `more than ${MAX_ENUM_VALUES} enum values.`;
  return totals.text > MAX_TEXT ? `more than ${MAX_TEXT} characters of names and values.` : null;
}

const MESSAGES_KEYWORDS = new Set(
  (
    '$ref $defs anyOf allOf type properties required additionalProperties items enum const ' +
    'description title default format minItems'
  ).split(' '),
);

/**
 * Returns why a schema is outside the subset that Anthropic's API enforces, in its words; null if it
 * is inside. Bounds of numbers, texts, and lists are outside, and so are schemas that refer to
 * themselves.
 */
function messagesProblem(schema: unknown): string | null {
  if (!isObject(schema)) return 'schema must be a JSON schema object.';
  return messagesNodeProblem(schema, { root: schema, open: ['#'] });
}

function messagesNodeProblem(
  node: unknown,
  walk: { readonly root: AnyObject; readonly open: readonly string[] },
): string | null {
  if (!isObject(node)) return 'a schema must be an object.';
  const { $ref: reference, type, enum: values, minItems, anyOf, allOf } = node;
  const what = typeof type === 'string' ? `For '${type}' type, ` : '';
  const unknown = Object.keys(node).find((key) => !MESSAGES_KEYWORDS.has(key));
  if (unknown !== undefined) return `${what}property '${unknown}' is not supported`;
  if (typeof minItems === 'number' && minItems > 1) {
    return `${what}'minItems' values other than 0 or 1 are not supported`;
  }
  if (typeof reference === 'string') {
    if (walk.open.includes(reference)) return `Circular reference: ${reference} is not supported`;
    const target = resolved(reference, walk.root);
    if (target === undefined) return `Reference ${reference} cannot be resolved`;
    return messagesNodeProblem(target, { ...walk, open: [...walk.open, reference] });
  }
  if (Array.isArray(values) && values.some((one) => one !== null && typeof one === 'object')) {
    return 'Enum value must be a string, number, boolean, or null';
  }
  const isObjectType = type === 'object' || node['properties'] !== undefined;
  if (isObjectType && node['additionalProperties'] !== false) {
    return "For 'object' type, 'additionalProperties' must be explicitly set to false";
  }
  const kinds = [type, anyOf, allOf, values, node['const']];
  if (kinds.every((one) => one === undefined)) return 'Schema type is missing';
  const named = isObject(node['properties']) ? Object.values(node['properties']) : [];
  const unions: readonly unknown[] = [anyOf, allOf].flatMap((one) =>
    Array.isArray(one) ? one : [],
  );
  const items = node['items'] === undefined ? [] : [node['items']];
  return first([...named, ...unions, ...items], (one) => messagesNodeProblem(one, walk));
}

interface Walk {
  readonly root: AnyObject;
  readonly totals: Totals;
  readonly at: Place;
  readonly level: number;
}

function nodeProblem(node: unknown, walk: Walk): string | null {
  const { at, root, level, totals } = walk;
  const context = `In context=(${at.map((key) => `'${key}'`).join(', ')}), `;
  if (!isObject(node)) return `${context}a schema must be an object.`;
  if (level > MAX_LEVELS) return `${context}more than ${MAX_LEVELS} levels of nesting.`;
  const unknown = Object.keys(node).find((key) => !KEYWORDS.has(key));
  if (unknown !== undefined) return `${context}'${unknown}' is not permitted.`;
  const { $ref: reference, type, enum: values, const: constant } = node;
  if (reference !== undefined) {
    if (Object.keys(node).length > 1) return `${context}$ref cannot have keywords beside it.`;
    return resolved(reference, root) === undefined
      ? `${context}reference to component ${JSON.stringify(reference)} which was not found.`
      : null;
  }
  totals.enumValues += Array.isArray(values) ? values.length : 0;
  totals.text += JSON.stringify([values, constant]).length - '[null,null]'.length;
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const odd = types.find((one) => typeof one !== 'string' || !TYPES.has(one));
  if (odd !== undefined) return `${context}${JSON.stringify(odd)} is not a valid type.`;
  if (types.length === 0 && node['anyOf'] === undefined) {
    return `${context}schema must have a 'type' key.`;
  }
  return (
    objectProblem(node, walk, types.includes('object'), context) ??
    arrayProblem(node, walk, types.includes('array'), context) ??
    unionProblem(node, walk, context)
  );
}

function objectProblem(
  node: AnyObject,
  walk: Walk,
  isObjectType: boolean,
  context: string,
): string | null {
  const { properties, required, additionalProperties } = node;
  if (!isObjectType && properties === undefined) return null;
  if (additionalProperties !== false) {
    return `${context}'additionalProperties' is required to be supplied and to be false.`;
  }
  const named = isObject(properties) ? Object.entries(properties) : [];
  const listed: readonly unknown[] = Array.isArray(required) ? required : [];
  const missing = named.find(([name]) => !listed.includes(name));
  if (missing !== undefined || listed.length !== named.length) {
    return `${context}'required' is required to be supplied and to be an array including every key in properties. Missing '${missing?.[0] ?? ''}'.`;
  }
  walk.totals.properties += named.length;
  return first(named, ([name, inner]) => {
    walk.totals.text += name.length;
    const at = [...walk.at, 'properties', name];
    return nodeProblem(inner, { ...walk, at, level: walk.level + (isLeaf(inner) ? 0 : 1) });
  });
}

/** Whether a node adds no level of nesting. */
function isLeaf(node: unknown): boolean {
  return !isObject(node) || (node['properties'] === undefined && node['items'] === undefined);
}

function arrayProblem(
  node: AnyObject,
  walk: Walk,
  isArrayType: boolean,
  context: string,
): string | null {
  if (!isArrayType && node['items'] === undefined) return null;
  if (!isObject(node['items'])) return `${context}array schema missing items.`;
  return nodeProblem(node['items'], { ...walk, at: [...walk.at, 'items'] });
}

function unionProblem(node: AnyObject, walk: Walk, context: string): string | null {
  const { anyOf } = node;
  if (anyOf === undefined) return null;
  if (!Array.isArray(anyOf) || anyOf.length === 0) return `${context}anyOf must be a list.`;
  const problem = first([...anyOf.entries()], ([index, one]) =>
    nodeProblem(one, { ...walk, at: [...walk.at, 'anyOf', String(index)] }),
  );
  if (problem !== null) return problem;
  const begins = anyOf.flatMap((one: unknown) => firstProperty(one, walk.root));
  const seen = new Set<string>();
  for (const { name, constant } of begins) {
    const twin = begins.some((other) => other.name === name && other.constant === undefined);
    const key = JSON.stringify([name, constant]);
    const isAlone = begins.filter((other) => other.name === name).length === 1;
    if (!isAlone && (twin || seen.has(key))) {
      return `${context}Objects provided via 'anyOf' must not share identical first keys. Consider adding a discriminator key or rearranging the properties to ensure the first key is unique.`;
    }
    seen.add(key);
  }
  return null;
}

/** The first property of an object schema, and its value if it has only one. */
function firstProperty(
  node: unknown,
  root: AnyObject,
): readonly { readonly name: string; readonly constant: unknown }[] {
  const whole = resolved(fieldOf(node, '$ref'), root) ?? node;
  const properties = fieldOf(whole, 'properties');
  const [begin] = isObject(properties) ? Object.entries(properties) : [];
  if (begin === undefined) return [];
  const values = fieldOf(begin[1], 'enum');
  const only: unknown = Array.isArray(values) && values.length === 1 ? values[0] : undefined;
  return [{ name: begin[0], constant: fieldOf(begin[1], 'const') ?? only }];
}

/**
 * Returns why a value does not fit a strict schema; null if it fits. Only the keywords that OpenAI
 * enforces are checked.
 */
export function conformProblem(value: unknown, schema: unknown): string | null {
  return isObject(schema) ? valueProblem(value, schema, { root: schema, at: '' }) : null;
}

function valueProblem(
  value: unknown,
  node: unknown,
  { root, at }: { readonly root: AnyObject; readonly at: string },
): string | null {
  const where = at === '' ? 'the answer' : at;
  if (!isObject(node)) return null;
  const { $ref: reference, anyOf, enum: values, const: constant, type } = node;
  if (reference !== undefined) return valueProblem(value, resolved(reference, root), { root, at });
  if (Array.isArray(anyOf)) {
    const problems = anyOf.map((one: unknown) => valueProblem(value, one, { root, at }));
    return problems.includes(null) ? null : (problems[0] ?? null);
  }
  if (constant !== undefined && value !== constant) {
    return `${where}: expected ${JSON.stringify(constant)}`;
  }
  if (Array.isArray(values) && !values.includes(value)) {
    return `${where}: expected one of ${JSON.stringify(values)}`;
  }
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (!types.some((one) => isOfType(value, one))) {
    return `${where}: expected ${types.join(' or ')}, got ${JSON.stringify(value)?.slice(0, 100)}`;
  }
  if (Array.isArray(value)) {
    return first([...value.entries()], ([index, one]) =>
      valueProblem(one, node['items'], { root, at: `${at}[${index}]` }),
    );
  }
  if (!isObject(value)) return null;
  const properties: AnyObject = isObject(node['properties']) ? node['properties'] : {};
  const stray = Object.keys(value).find((key) => !Object.hasOwn(properties, key));
  if (stray !== undefined) return `${where}: expected no property "${stray}"`;
  return first(Object.entries(properties), ([name, inner]) =>
    Object.hasOwn(value, name)
      ? valueProblem(value[name], inner, { root, at: `${at}.${name}` })
      : `${where}: expected the property "${name}"`,
  );
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return type === undefined || typeof value === type;
  }
}

function resolved(reference: unknown, root: AnyObject): AnyObject | undefined {
  if (reference === '#') return root;
  const name = typeof reference === 'string' ? reference.replace(/^#\/\$defs\//, '') : '';
  const node = fieldOf(root['$defs'], name);
  return isObject(node) ? node : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function first<Item>(
  items: readonly Item[],
  problemOf: (item: Item) => string | null,
): string | null {
  for (const item of items) {
    const problem = problemOf(item);
    if (problem !== null) return problem;
  }
  return null;
}

/** Returns the text of a scripted completion that ended by itself; undefined for any other. */
export function answerTextOf(completion: JsonObject): string | undefined {
  const choices = completion['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  if (fieldOf(choice, 'finish_reason') !== 'stop') return undefined;
  const message = fieldOf(choice, 'message');
  const text = fieldOf(message, 'content');
  return typeof text === 'string' && fieldOf(message, 'refusal') === undefined ? text : undefined;
}
