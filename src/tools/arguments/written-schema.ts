import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import { isObject } from '../../core/json.js';
import type { Json, JsonObject } from '../../core/json.js';
import { normalizeError } from '../result/normalize-error.js';

/** Kinds of zod schemas that no JSON value satisfies, or whose JSON form is ambiguous. */
const INEXPRESSIBLE = new Set([
  'bigint',
  'custom',
  'date',
  'file',
  'function',
  'map',
  'nan',
  'promise',
  'set',
  'symbol',
  'transform',
  'undefined',
  'void',
]);

/** Keywords whose keys are names that the author chose; their order is kept. */
const NAMED = new Set(['properties', '$defs', 'patternProperties']);

/**
 * Returns the JSON schema of a model's input: before transforms, and with defaults left optional.
 * Keywords are sorted and properties keep the order of the definition, so a definition always
 * produces the same text. `field` is the author's name for the schema.
 *
 * Throws an `InputError` that names each path that JSON schema cannot express.
 */
export function writtenSchema(type: z.ZodType, field: string): JsonObject {
  const refused: string[] = [];
  const schema = z.toJSONSchema(type, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema: { _zod: internals }, path }) => {
      const kind = internals.def.type;
      if (INEXPRESSIBLE.has(kind)) {
        refused.push(`"${schemaPath(path) || `(the whole ${field})`}" (${kind})`);
      }
    },
  });
  if (refused.length > 0) throw new InputError(inexpressible(field, refused.toSorted().join(', ')));
  assertExpressible(type, field);
  const { $schema: _dialect, ...rest } = schema;
  return orderedKeywords(asData(rest));
}

/** Throws for kinds that a later version of zod may add. */
function assertExpressible(type: z.ZodType, field: string): void {
  try {
    z.toJSONSchema(type, { io: 'input' });
  } catch (error) {
    const { message } = normalizeError(error);
    throw new InputError(inexpressible(field, `a part of it (${message})`), { cause: error });
  }
}

function inexpressible(field: string, what: string): string {
  return (
    `\`${field}\` has parts that JSON cannot express: ${what}. Models write JSON: use strings, ` +
    'numbers, booleans, enums, arrays, and objects (a date as z.iso.datetime(), a bigint as a string)'
  );
}

/** Writes a path in a JSON schema as in code: `["properties", "a", "items"]` becomes `a[]`. */
export function schemaPath(path: readonly (string | number)[]): string {
  const steps = path.map((step, index) => {
    const named = NAMED.has(String(path[index - 1]));
    if (named) return `.${step}`;
    if (step === 'items' || step === 'prefixItems') return '[]';
    if (step === 'additionalProperties' || step === 'propertyNames') return '{}';
    return typeof step === 'number' ? `(alternative ${step + 1})` : '';
  });
  return steps.join('').replace(/^\./, '');
}

/** Returns the schema as JSON: zod's result is JSON, but its type allows more. */
function asData(schema: object): JsonObject {
  const data: unknown = JSON.parse(JSON.stringify(schema));
  return isJsonObject(data) ? data : {};
}

/** Sorts keywords at every level; names of properties and definitions keep their order. */
export function orderedKeywords(schema: JsonObject): JsonObject {
  const sorted = Object.keys(schema)
    .toSorted()
    .map((key): [string, Json | undefined] => {
      const value = schema[key];
      if (NAMED.has(key) && isJsonObject(value)) {
        const named = Object.entries(value).map(([name, item]) => [name, ordered(item)] as const);
        return [key, Object.fromEntries(named)];
      }
      return [key, ordered(value)];
    });
  return Object.fromEntries(sorted);
}

function ordered(value: Json | undefined): Json | undefined {
  if (Array.isArray(value)) return value.map((item: Json) => ordered(item) ?? null);
  return isJsonObject(value) ? orderedKeywords(value) : value;
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value);
}
