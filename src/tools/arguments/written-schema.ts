import { z } from 'zod';
import { isObject } from '../../core/json.js';
import type { Json, JsonObject } from '../../core/json.js';
import { normalizeError } from '../result/normalize-error.js';

/** Kinds of zod schemas that no JSON value can satisfy, or whose JSON form would be a guess. */
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

/** Keywords whose keys are names chosen by the author: their order is kept. */
const NAMED = new Set(['properties', '$defs', 'patternProperties']);

/**
 * The JSON schema of what is to be written, i.e. before transforms and with defaults left optional.
 * Keywords are sorted, properties keep the order of the definition, so one definition always gives
 * one text. `field` is what the author calls the schema.
 *
 * Throws an error that names each path which JSON schema cannot express.
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
  if (refused.length > 0) throw new Error(inexpressible(field, refused.toSorted().join(', ')));
  assertExpressible(type, field);
  const { $schema: _dialect, ...rest } = schema;
  return orderedKeywords(asData(rest));
}

/** Catches kinds that a later zod adds. */
function assertExpressible(type: z.ZodType, field: string): void {
  try {
    z.toJSONSchema(type, { io: 'input' });
  } catch (error) {
    const { message } = normalizeError(error);
    throw new Error(inexpressible(field, `a part of it (${message})`), { cause: error });
  }
}

function inexpressible(field: string, what: string): string {
  return (
    `\`${field}\` has what JSON cannot express: ${what}. What is written is JSON: use strings, ` +
    'numbers, booleans, enums, arrays and objects (a date as z.iso.datetime(), a bigint as a string)'
  );
}

/** `["properties","a","items"]` → `a[]`. */
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

/** What zod writes is JSON, but its type allows more. */
function asData(schema: object): JsonObject {
  const data: unknown = JSON.parse(JSON.stringify(schema));
  return isJsonObject(data) ? data : {};
}

/** Keywords sorted, at every level; names of properties and definitions keep their order. */
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
