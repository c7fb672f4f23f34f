import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import { formatCount, show } from '../core/text/text.js';
import { readablePath } from '../validation/check-options.js';
import { likelyMeant } from '../validation/near-names.js';
import {
  type SchemaError,
  errorsByAlternative,
  innerErrors,
  isOtherConstant,
  isOtherKind,
  isWrapper,
  keysOf,
  likelyAlternative,
  nodeAt,
  schemaAt,
} from './schema-unions.js';

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
  const texts = [...new Set(faultsOf(errors, checked))];
  const more = texts.length - MAX_FAULTS;
  return [...texts.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Returns the faults that errors mean. The errors of alternatives are part of the one that none of them fits. */
function faultsOf(errors: readonly SchemaError[], checked: Checked): readonly string[] {
  const faults: (readonly string[])[] = [];
  for (let end = errors.length; end > 0; end -= 1) {
    const error = errors[end - 1];
    if (error === undefined) continue;
    if (isWrapper(error)) {
      const inner = innerErrors(errors.slice(0, end - 1), error, checked.schema);
      end -= inner.length;
      faults.unshift(
        error.keyword === 'propertyNames'
          ? [nameFault(error, inner, checked)]
          : unionFaults(error, inner, checked),
      );
    } else faults.unshift([describeError(error, checked)]);
  }
  return faults.flat();
}

/** Returns the faults of a value that fits no alternative of a union. */
function unionFaults(
  union: SchemaError,
  inner: readonly SchemaError[],
  checked: Checked,
): readonly string[] {
  const some = union.keyword === 'oneOf' ? 'exactly one' : 'one';
  const unclear = [unfit(union, `a value that fits ${some} of the alternatives`, checked)];
  // Several alternatives fit, of which one may.
  if (inner.length === 0 || Array.isArray(union.params['passingSchemas'])) return unclear;
  const groups = errorsByAlternative(union, inner, checked.schema);
  if (groups === null) return unclear;
  if (groups.every((group) => isOtherKind(group, union))) {
    return [unfit(union, kindsText(groups), checked)];
  }
  const constants = groups.flatMap((group) =>
    group.filter((error) => isOtherConstant(error, union)).slice(0, 1),
  );
  const [first] = constants;
  const isTag =
    constants.length === groups.length &&
    constants.every(({ instancePath }) => instancePath === first?.instancePath);
  if (first !== undefined && isTag) {
    const values = constants.map(({ params }) => params['allowedValue']);
    return [unfit(first, oneOf([...new Set(values)]), checked)];
  }
  return faultsOf(likelyAlternative(groups, union), checked);
}

/** Returns the kinds of values, and the values, that alternatives take. */
function kindsText(groups: readonly (readonly SchemaError[])[]): string {
  const kinds: unknown[] = [];
  const values: unknown[] = [];
  for (const group of groups) {
    const given = group.flatMap(({ keyword, params }): readonly unknown[] => {
      const { allowedValue, allowedValues } = params;
      if (keyword === 'const') return [allowedValue];
      return keyword === 'enum' && Array.isArray(allowedValues) ? allowedValues : [];
    });
    values.push(...given);
    // A value of another kind is also another value.
    if (given.length > 0 && !group.some(isWrapper)) continue;
    kinds.push(
      ...group.flatMap(({ keyword, params }) => (keyword === 'type' ? params['type'] : [])),
    );
  }
  const texts = [
    ...(kinds.length > 0 ? [typeText([...new Set(kinds)])] : []),
    ...(values.length > 0 ? [oneOf([...new Set(values)])] : []),
  ];
  return texts.join(', or ');
}

/** Returns the fault of the name of a field that a schema does not take. */
function nameFault(
  { instancePath, params }: SchemaError,
  inner: readonly SchemaError[],
  { value, what }: Checked,
): string {
  const { propertyName: name } = params;
  const label = readablePath(follow(value, keysOf(instancePath)).path) || what;
  const expected = inner.map((error) => expectation(error, name, undefined)[0]);
  const why =
    expected.length === 0 || inner.some(isWrapper)
      ? ''
      : `, expected ${[...new Set(expected)].join(', and ')}`;
  return `${label}: field ${show(name)} has a name that is not allowed${why}`;
}

/** Returns the fault of a value that is not what was expected. */
function unfit({ instancePath }: SchemaError, expected: string, { value, what }: Checked): string {
  const { path, at } = follow(value, keysOf(instancePath));
  return `${readablePath(path) || what}: expected ${expected}, got ${showValue(at)}`;
}

function showValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : show(value);
}

function describeError(error: SchemaError, { value, schema, what }: Checked): string {
  const { keyword, params, instancePath } = error;
  const { path, at } = follow(value, keysOf(instancePath));
  const owner = schemaAt(schema, error, 1);
  const { missingProperty: missing } = params;
  if (keyword === 'required' && typeof missing === 'string') {
    const properties = isObject(owner) ? owner['properties'] : undefined;
    const field = isObject(properties) ? properties[missing] : undefined;
    return `${readablePath([...path, missing])}: missing, expected ${kindText(field)}`;
  }
  const label = readablePath(path) || what;
  const unknown = params['additionalProperty'] ?? params['unevaluatedProperty'];
  if (typeof unknown === 'string') return `${label}: unknown field ${show(unknown)}`;
  const [expected, got = showValue(at)] = expectation(error, at, owner);
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
