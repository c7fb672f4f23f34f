import { z } from 'zod';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { checkBySchema } from './schema-check.js';

/** The patterns of zod's own formats, which are known to be fast. */
const OWN: ReadonlySet<string> = new Set(
  Object.values(z.regexes).flatMap((each) => (each instanceof RegExp ? [each.source] : [])),
);
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/**
 * Converts a pinned JSON schema to a zod type. zod would run its patterns on the worker's only
 * thread, so patterns other than zod's own are checked in the thread for untrusted schemas; parsing
 * must be async. A pattern that takes too long there is not enforced. Throws for a schema that
 * cannot be read.
 */
export function toZodType(schema: JsonObject): z.ZodType {
  const found: string[] = [];
  const plain = without(schema, (key, text) => {
    const isForeign = key === 'pattern' && !OWN.has(text);
    if (isForeign) found.push(text);
    return isForeign;
  });
  if (found.length === 0) return z.fromJSONSchema(schema);
  // zod checks formats; the other validator interprets them differently.
  const patterns = without(schema, (key, text) => {
    return key === 'format' || (key === 'pattern' && OWN.has(text));
  });
  return z.fromJSONSchema(plain).superRefine(async (value, context) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was read from JSON
    const fault = await checkBySchema(patterns, value as Json, 'the value');
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/** Returns the schema without the keywords that `drop` selects by their text. */
function without(node: JsonObject, drop: (key: string, text: string) => boolean): JsonObject {
  const entries = Object.entries(node).flatMap(([key, value]): [string, Json | undefined][] => {
    if (typeof value === 'string') return drop(key, value) ? [] : [[key, value]];
    return [[key, DATA.has(key) || value === undefined ? value : inside(value, drop)]];
  });
  return Object.fromEntries(entries);
}

function inside(value: Json, drop: (key: string, text: string) => boolean): Json {
  if (Array.isArray(value)) return value.map((item: Json) => inside(item, drop));
  return isSchema(value) ? without(value, drop) : value;
}

function isSchema(value: Json): value is JsonObject {
  return isObject(value);
}
