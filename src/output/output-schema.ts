import { z } from 'zod';
import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import { orderedKeywords, writtenSchema } from '../tools/arguments/written-schema.js';

/** What an answer has to be, as data. */
export interface OutputSchema {
  /** JSON schema of an object: what the author wrote, optional keys left optional. */
  readonly schema: JsonObject;
  /** The author's schema is of no object, so the answer is written as `{"value": …}`. */
  readonly wrapped: boolean;
}

/** Tells the model, and those who read a pinned schema, that the answer itself is in `value`. */
const WRAPPED = 'The answer is in "value".';

const known = new WeakMap<z.ZodType, OutputSchema>();

/**
 * The JSON schema of an answer: the side that the model writes, i.e. before transforms. Its root is
 * always an object, for no provider enforces anything else.
 *
 * Throws an error that names each path which JSON schema cannot express.
 */
export function outputSchema(type: z.ZodType): OutputSchema {
  const before = known.get(type);
  if (before !== undefined) return before;
  const root = withRootInline(writtenSchema(type, 'output'));
  const made =
    root['type'] === 'object'
      ? { schema: root, wrapped: false }
      : { schema: wrap(type), wrapped: true };
  known.set(type, made);
  return made;
}

/** Has `outputSchema` and parsing know a type by the schema that it was made of. */
export function rememberSchema(type: z.ZodType, made: OutputSchema): void {
  known.set(type, made);
}

/** Whether a schema of `outputSchema` is wrapped, for those who have only the data. */
export function isWrapped(schema: JsonObject): boolean {
  return schema['description'] === WRAPPED;
}

function wrap(type: z.ZodType): JsonObject {
  const schema = writtenSchema(z.strictObject({ value: type }), 'output');
  return orderedKeywords({ ...schema, required: ['value'], description: WRAPPED });
}

/** A type with an id of its own is a reference; at the root, no provider takes one. */
function withRootInline(schema: JsonObject): JsonObject {
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
