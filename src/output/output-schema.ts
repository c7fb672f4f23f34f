import { z } from 'zod';
import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import { orderedKeywords, writtenSchema } from '../tools/arguments/written-schema.js';

/** The schema of an answer as data. */
export interface OutputSchema {
  /** The JSON schema of an object, with optional keys left optional. */
  readonly schema: JsonObject;
  /**
   * True if the author's schema is not an object schema. The answer is then written as `{"value":
   * …}`.
   */
  readonly wrapped: boolean;
}

/** The description of a wrapped schema, for the model and for `isWrapped`. */
const WRAPPED = 'The answer is in "value".';

const known = new WeakMap<z.ZodType, OutputSchema>();

/**
 * Creates the JSON schema of an answer as the model writes it, before transforms. Its root is
 * always an object, since no provider enforces anything else.
 *
 * Throws an `InputError` that names each path that JSON schema cannot express.
 */
export function outputSchema(type: z.ZodType): OutputSchema {
  const cached = known.get(type);
  if (cached !== undefined) return cached;
  const root = inlineRoot(writtenSchema(type, 'output'));
  const created =
    root['type'] === 'object'
      ? { schema: root, wrapped: false }
      : { schema: wrap(type), wrapped: true };
  known.set(type, created);
  return created;
}

/**
 * Inlines the root: a type with its own id becomes a reference, which no provider accepts there.
 */
function inlineRoot(schema: JsonObject): JsonObject {
  const { $ref, ...rest } = schema;
  const name = typeof $ref === 'string' ? /^#\/\$defs\/(.+)$/.exec($ref)?.[1] : undefined;
  const definitions = rest['$defs'];
  if (name === undefined || !isJsonObject(definitions)) return schema;
  const root = definitions[name];
  return isJsonObject(root) ? orderedKeywords({ ...root, ...rest }) : schema;
}

function isJsonObject(value: Json | undefined): value is JsonObject {
  return isObject(value);
}

function wrap(type: z.ZodType): JsonObject {
  const schema = writtenSchema(z.strictObject({ value: type }), 'output');
  return orderedKeywords({ ...schema, required: ['value'], description: WRAPPED });
}

/** Registers the schema that a type was made from, for `outputSchema` and parsing. */
export function registerSchema(type: z.ZodType, schema: OutputSchema): void {
  known.set(type, schema);
}

/** Returns true if a schema of `outputSchema` is wrapped. */
export function isWrapped(schema: JsonObject): boolean {
  return schema['description'] === WRAPPED;
}
