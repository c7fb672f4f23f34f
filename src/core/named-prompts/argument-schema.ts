import { canonicalJson, isObject, type Json } from '../json.js';
import { show } from '../text/format-value.js';

/** The keywords of JSON schema that `argumentProblem` checks. */
const CHECKED = new Set([
  'type',
  'enum',
  'const',
  'anyOf',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'items',
  'minItems',
  'maxItems',
  'properties',
  'required',
  'additionalProperties',
]);
/** Keywords that only annotate. */
const DESCRIBING = new Set(['description', 'title', 'default', 'examples', 'deprecated']);

/**
 * Returns a keyword of the schema that `argumentProblem` does not check; null if it checks all of
 * them.
 */
export function uncheckedKeyword(schema: unknown): string | null {
  if (!isObject(schema)) return null;
  for (const [keyword, value] of Object.entries(schema)) {
    if (!CHECKED.has(keyword) && !DESCRIBING.has(keyword)) return keyword;
    const found = innerSchemas(keyword, value).map(uncheckedKeyword);
    const inner = found.find((one) => one !== null);
    if (inner !== undefined) return inner;
  }
  return null;
}

function innerSchemas(keyword: string, value: unknown): readonly unknown[] {
  if (keyword === 'items' || keyword === 'additionalProperties') return [value];
  if (keyword === 'anyOf' && Array.isArray(value)) return value;
  return keyword === 'properties' && isObject(value) ? Object.values(value) : [];
}

/** Returns what is wrong with a value by its JSON schema, or null. `at`: the field's name. */
export function argumentProblem(schema: unknown, value: unknown, at: string): string | null {
  if (!isObject(schema)) return null;
  const { type, enum: among, const: only, anyOf } = schema;
  const wrong = (expected: string) => `${at}: expected ${expected}, got ${show(value)}`;
  if (Array.isArray(anyOf)) {
    const problems = anyOf.map((one: unknown) => argumentProblem(one, value, at));
    if (!problems.includes(null)) return wrong(anyOf.map(shortForm).join(', or '));
  }
  const types = typesOf(type);
  if (types.length > 0 && !types.some((one) => hasType(one, value)))
    return wrong(shortForm(schema));
  if (Array.isArray(among) && !among.some((one: Json) => isEqual(one, value))) {
    return wrong(`one of ${among.map((one) => JSON.stringify(one)).join(', ')}`);
  }
  if (only !== undefined && !isEqual(only, value)) return wrong(JSON.stringify(only));
  const outside = boundsProblem(schema, value);
  return outside === null ? contentProblem(schema, value, at) : wrong(outside);
}

function shortForm(schema: unknown): string {
  const { type, enum: among, const: only } = isObject(schema) ? schema : {};
  if (Array.isArray(among)) return among.map((one) => JSON.stringify(one)).join(' or ');
  if (only !== undefined) return JSON.stringify(only);
  return typesOf(type).map(typeName).join(', or ') || 'a value';
}

/** Returns the types of the keyword, which has one type or a list. */
function typesOf(type: unknown): readonly string[] {
  return [type].flat().filter((one) => typeof one === 'string');
}

function typeName(type: string): string {
  if (type === 'integer') return 'a whole number';
  if (type === 'array') return 'a list';
  if (type === 'null') return 'null';
  return type === 'object' ? 'an object' : `a ${type}`;
}

function hasType(type: string, value: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value) && !Array.isArray(value);
    case 'null':
      return value === null;
    default:
      return typeof value === type;
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- arguments are JSON
  return canonicalJson(a as Json) === canonicalJson(b as Json);
}

const UNITS = { Length: 'characters', imum: '', Items: 'items' } as const;

function boundsProblem(schema: Record<string, unknown>, value: unknown): string | null {
  const [size, kind] = measure(value);
  if (size === null) return null;
  const bound = (name: string) => (typeof schema[name] === 'number' ? schema[name] : null);
  const [least, most] = [bound(`min${kind}`), bound(`max${kind}`)];
  const unit = UNITS[kind] === '' ? '' : ` ${UNITS[kind]}`;
  if (least !== null && size < least) return `at least ${least}${unit}`;
  if (most !== null && size > most) return `at most ${most}${unit}`;
  if (kind !== 'imum') return null;
  const [above, below] = [bound('exclusiveMinimum'), bound('exclusiveMaximum')];
  if (above !== null && size <= above) return `more than ${above}`;
  return below !== null && size >= below ? `less than ${below}` : null;
}

function measure(value: unknown): readonly [number | null, keyof typeof UNITS] {
  if (typeof value === 'string') return [value.length, 'Length'];
  return Array.isArray(value)
    ? [value.length, 'Items']
    : [typeof value === 'number' ? value : null, 'imum'];
}

function contentProblem(
  schema: Record<string, unknown>,
  value: unknown,
  at: string,
): string | null {
  if (Array.isArray(value)) {
    const found = value.map((item, index) =>
      argumentProblem(schema['items'], item, `${at}[${index}]`),
    );
    return found.find((one) => one !== null) ?? null;
  }
  return isObject(value) ? objectProblem(schema, value, at) : null;
}

/** Returns what is wrong with the fields of an object by its JSON schema, or null. */
export function objectProblem(
  schema: Record<string, unknown>,
  value: Record<string, unknown>,
  at: string,
): string | null {
  const { properties, required, additionalProperties: more } = schema;
  const known = isObject(properties) ? properties : {};
  const missing = (Array.isArray(required) ? required : []).find(
    (name: unknown) => typeof name === 'string' && !Object.hasOwn(value, name),
  );
  if (missing !== undefined) {
    return `${at}.${String(missing)}: expected a value, got none; give this argument`;
  }
  for (const [name, item] of Object.entries(value)) {
    const own = Object.hasOwn(known, name);
    if (!own && more === false) {
      return `${at}.${name}: expected one of ${Object.keys(known).join(', ') || 'none'}; remove this field`;
    }
    const found = argumentProblem(own ? known[name] : more, item, `${at}.${name}`);
    if (found !== null) return found;
  }
  return null;
}
