import { z } from 'zod';
import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import { normaliseError } from './normalise-error.js';

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
 * The JSON schema of a tool's arguments: the side that the model writes, i.e. before transforms and
 * with defaults left optional. Keywords are sorted, properties keep the order of the definition, so
 * one definition always gives one text.
 *
 * Throws an error that names each path which JSON schema cannot express.
 */
export function argumentsSchema(input: z.ZodObject): JsonObject {
  const refused: string[] = [];
  const schema = z.toJSONSchema(input, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema: { _zod: internals }, path }) => {
      const { type } = internals.def;
      if (INEXPRESSIBLE.has(type)) refused.push(`"${readablePath(path)}" (${type})`);
    },
  });
  if (refused.length > 0) throw new Error(inexpressible(refused.toSorted().join(', ')));
  assertExpressible(input);
  const { $schema: _dialect, ...rest } = schema;
  const open = 'additionalProperties' in rest ? {} : { additionalProperties: false };
  return orderedKeywords({ ...asData(rest), ...open });
}

/** Catches kinds that a later zod adds. */
function assertExpressible(input: z.ZodObject): void {
  try {
    z.toJSONSchema(input, { io: 'input' });
  } catch (error) {
    throw new Error(inexpressible(`a part of it (${normaliseError(error).message})`), {
      cause: error,
    });
  }
}

function inexpressible(what: string): string {
  return (
    `\`input\` has what JSON cannot express: ${what}. A model writes JSON: use strings, numbers, ` +
    'booleans, enums, arrays and objects (a date as z.iso.datetime(), a bigint as a string)'
  );
}

/** `["properties","a","items"]` → `a[]`. */
function readablePath(path: readonly (string | number)[]): string {
  const steps = path.map((step, index) => {
    const named = NAMED.has(String(path[index - 1]));
    if (named) return `.${step}`;
    if (step === 'items' || step === 'prefixItems') return '[]';
    if (step === 'additionalProperties' || step === 'propertyNames') return '{}';
    return typeof step === 'number' ? `(alternative ${step + 1})` : '';
  });
  return steps.join('').replace(/^\./, '') || '(the whole input)';
}

/** What zod writes is JSON, but its type allows more. */
function asData(schema: object): JsonObject {
  const data: unknown = JSON.parse(JSON.stringify(schema));
  return isJsonObject(data) ? data : {};
}

function orderedKeywords(schema: JsonObject): JsonObject {
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
