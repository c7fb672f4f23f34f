import { z } from 'zod';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { schemaCheck } from './schema-check.js';

/** Patterns that zod writes for its own formats, and that are known to be quick. */
const OWN: ReadonlySet<string> = new Set(
  Object.values(z.regexes).flatMap((each) => (each instanceof RegExp ? [each.source] : [])),
);
/** Keywords that hold data, not schemas. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/**
 * The zod type of a JSON schema that was pinned. zod would run its patterns on the worker's only thread;
 * those that are not zod's own are checked in the thread for schemas of others, and so only by async
 * parsing. One that takes too long there is not enforced. Throws for a schema that cannot be read.
 */
export function typeOfPinned(schema: JsonObject): z.ZodType {
  const found: string[] = [];
  const plain = without(schema, (key, text) => {
    const isForeign = key === 'pattern' && !OWN.has(text);
    if (isForeign) found.push(text);
    return isForeign;
  });
  if (found.length === 0) return z.fromJSONSchema(schema);
  // Formats are zod's affair: the other checker has its own opinion of them.
  const patterns = without(schema, (key, text) => {
    return key === 'format' || (key === 'pattern' && OWN.has(text));
  });
  return z.fromJSONSchema(plain).superRefine(async (value, context) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was read from JSON
    const fault = await schemaCheck(patterns, value as Json, 'the value');
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/** The schema without the keywords that hold such a text; names of properties are no keywords. */
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
