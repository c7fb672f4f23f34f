import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import { formatCount, percentDecoded, show } from '../core/text/text.js';
import { likelyMeant, readablePath } from '../validation/check-options.js';

/** An error of the validator for JSON schemas. `params` are empty if they are long. */
export interface SchemaError {
  /** The place of the value, as a JSON pointer. */
  readonly instancePath: string;
  /** The place of the keyword in the schema, as a URL fragment with a JSON pointer. */
  readonly schemaPath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** The most faults that are named. */
const MAX_FAULTS = 10;
/** The most values that are named as possible ones. */
const MAX_VALUES = 20;

/** A value and its schema, with the name of the whole value. */
interface Checked {
  readonly value: Json;
  readonly schema: JsonObject;
  readonly what: string;
}

/**
 * Returns what is wrong with a value, in the words of `describeIssues`: `place: expected X, got Y`, one
 * after the other. `what` names the place of the whole value.
 */
export function faultText(errors: readonly SchemaError[], checked: Checked): string {
  // The errors of alternatives are part of the error that no alternative fits.
  const unions = errors.filter(isUnion);
  const whole = errors.filter(
    ({ schemaPath }) => !unions.some((union) => schemaPath.startsWith(`${union.schemaPath}/`)),
  );
  const texts = [...new Set(whole.map((error) => describeError(error, { ...checked, errors })))];
  const more = texts.length - MAX_FAULTS;
  return [...texts.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

function isUnion({ keyword }: SchemaError): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf';
}

function describeError(
  error: SchemaError,
  { value, schema, what, errors }: Checked & { readonly errors: readonly SchemaError[] },
): string {
  const { keyword, params, instancePath, schemaPath } = error;
  const { path, at } = follow(value, keysOf(instancePath));
  const owner = nodeAt(schema, keysOf(percentDecoded(schemaPath)).slice(0, -1));
  const { missingProperty: missing } = params;
  if (keyword === 'required' && typeof missing === 'string') {
    const properties = isObject(owner) ? owner['properties'] : undefined;
    const field = isObject(properties) ? properties[missing] : undefined;
    return `${readablePath([...path, missing])}: missing, expected ${kindText(field)}`;
  }
  const label = readablePath(path) || what;
  const unknown = params['additionalProperty'] ?? params['unevaluatedProperty'];
  if (typeof unknown === 'string') return `${label}: unknown field ${show(unknown)}`;
  const [expected, got = typeof at === 'number' ? String(at) : show(at)] = isUnion(error)
    ? [alternatives(error, errors)]
    : expectation(error, at, owner);
  return `${label}: expected ${expected}, got ${got}${meant(error, at)}`;
}

/** Returns what a keyword expects, and what was received if that is not the value. */
function expectation(
  { keyword, params, message }: SchemaError,
  at: unknown,
  owner: unknown,
): readonly [expected: string, got?: string] {
  const { limit, type, allowedValues, allowedValue, format, pattern, multipleOf } = params;
  const isWhole = isObject(owner) && owner['type'] === 'integer';
  const number = isWhole ? 'an integer' : 'a number';
  switch (keyword) {
    case 'type':
      return [typeText(type)];
    case 'enum':
      return [oneOf(Array.isArray(allowedValues) ? allowedValues : [])];
    case 'const':
      return [show(allowedValue)];
    case 'minimum':
      return [`${number} of at least ${String(limit)}`];
    case 'maximum':
      return [`${number} of at most ${String(limit)}`];
    case 'exclusiveMinimum':
      return [`${number} greater than ${String(limit)}`];
    case 'exclusiveMaximum':
      return [`${number} less than ${String(limit)}`];
    case 'multipleOf':
      return [`a multiple of ${String(multipleOf)}`];
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      return [`at least ${sizeText(keyword, limit)}`, sizeOf(at)];
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return [`at most ${sizeText(keyword, limit)}`, sizeOf(at)];
    case 'pattern':
      return [`a string that matches /${String(pattern)}/`];
    case 'format':
      return [formatText(String(format))];
    case 'uniqueItems':
      return ['different items'];
    default:
      return [`a value that fits the schema (it ${message})`];
  }
}

/** Returns the kind of value that a schema expects, such as `an integer`. */
export function kindText(schema: unknown): string {
  const { type, enum: values, format } = isObject(schema) ? schema : {};
  if (Array.isArray(values)) return oneOf(values);
  return typeof format === 'string' ? formatText(format) : typeText(type);
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
};

function typeText(type: unknown): string {
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  return types.map((one) => TYPES[String(one)] ?? 'a value').join(' or ');
}

/** A value of each format that a field of a form may have. */
const FORMAT_EXAMPLES: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T09:00:00Z',
  email: 'ann@example.com',
  uri: 'https://example.com',
};

function formatText(format: string): string {
  const example = FORMAT_EXAMPLES[format];
  return `a string in the format ${format}${example === undefined ? '' : `, such as ${show(example)}`}`;
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.slice(0, MAX_VALUES).map((one) => show(one));
  const more = values.length - shown.length;
  const list = `${shown.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
  return values.length === 1 ? list : `one of ${list}`;
}

function sizeText(keyword: string, limit: unknown): string {
  const noun = keyword.endsWith('Length')
    ? 'character'
    : keyword.endsWith('Items')
      ? 'item'
      : 'field';
  return formatCount(Number(limit), noun);
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') return String(Array.from(value).length);
  return String(
    isObject(value) ? Object.keys(value).length : Array.isArray(value) ? value.length : 0,
  );
}

/** Returns what the alternatives of a union expect: their values, if each is one. */
function alternatives(union: SchemaError, errors: readonly SchemaError[]): string {
  const inner = errors.filter(({ schemaPath }) => schemaPath.startsWith(`${union.schemaPath}/`));
  const values = inner.map(({ params }) => params['allowedValue']);
  return inner.length > 0 && inner.every(({ keyword }) => keyword === 'const')
    ? oneOf(values)
    : union.keyword === 'oneOf'
      ? 'a value that fits exactly one of the alternatives'
      : 'a value that fits one of the alternatives';
}

/** Returns a note that names the value that a text may be a misspelling of. */
function meant({ keyword, params }: SchemaError, at: unknown): string {
  const { allowedValues } = params;
  if (keyword !== 'enum' || typeof at !== 'string' || !Array.isArray(allowedValues)) return '';
  const likely = likelyMeant(
    at,
    allowedValues.filter((one) => typeof one === 'string'),
  );
  return likely === undefined ? '' : `; did you mean ${show(likely)}?`;
}

function keysOf(pointer: string): readonly string[] {
  const keys = pointer.split('/').slice(1);
  return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Follows keys into a value. Returns the path with indexes as numbers, and what is there. */
function follow(
  value: Json,
  keys: readonly string[],
): { readonly path: readonly PropertyKey[]; readonly at: unknown } {
  let at: unknown = value;
  const path = keys.map((key) => {
    const isIndex = Array.isArray(at);
    at = nodeAt(at, [key]);
    return isIndex ? Number(key) : key;
  });
  return { path, at };
}

function nodeAt(root: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, key)
        ? Reflect.get(at, key)
        : undefined,
    root,
  );
}
