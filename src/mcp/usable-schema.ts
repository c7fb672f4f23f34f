import type { Json, JsonObject } from '../core/json.js';
import { isObject } from '../core/json.js';
import { orderedKeywords } from '../tools/arguments/written-schema.js';
import { hasHidden, stripHidden } from './hidden-text.js';

/** A schema that models can use, or why they cannot. */
export type UsableSchema =
  | { readonly ok: true; readonly schema: JsonObject }
  | { readonly ok: false; readonly problem: string };

const MAX_BYTES = 64 * 1024;
const MAX_LEVELS = 64;
/** Providers accept none of these at the root of a tool's arguments. */
const NOT_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];
/** Keywords with texts for readers, which do not constrain values. */
const FOR_READERS = new Set(['description', 'title', '$comment']);

/**
 * Returns the schema of a tool's arguments for models: complete with its definitions, with keywords
 * in a fixed order, and without hidden characters in its texts for readers.
 */
export function usableSchema(schema: JsonObject): UsableSchema {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > MAX_BYTES) return no(`its schema has ${bytes} bytes, more than ${MAX_BYTES}`);
  if (schema['type'] !== 'object') return no('its schema is not of type "object"');
  const keyword = NOT_AT_ROOT.find((each) => each in schema);
  if (keyword !== undefined) return no(`its schema has "${keyword}" at its root`);
  const faults: string[] = [];
  const clean = cleaned(schema, { key: '', depth: 0, isNames: false, faults });
  const [fault] = faults;
  if (fault !== undefined) return no(fault);
  return { ok: true, schema: isSchema(clean) ? orderedKeywords(clean) : {} };
}

interface Place {
  /** The keyword or name that holds the value. */
  readonly key: string;
  readonly depth: number;
  /** Whether the keys are names that the author of the schema chose. */
  readonly isNames: boolean;
  readonly faults: string[];
}

function cleaned(value: Json, place: Place): Json {
  const { key, depth, isNames, faults } = place;
  if (depth > MAX_LEVELS) {
    faults.push(`its schema is nested deeper than ${MAX_LEVELS} levels`);
    return null;
  }
  if (typeof value === 'string') return cleanedText(value, place);
  if (Array.isArray(value)) {
    return value.map((item: Json) => cleaned(item, { ...place, depth: depth + 1, isNames: false }));
  }
  if (!isSchema(value)) return value;
  const within =
    !isNames && ['properties', '$defs', 'definitions', 'patternProperties'].includes(key);
  const entries = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    if (hasHidden(name)) faults.push('a name in its schema has hidden characters');
    if (item === undefined) return [];
    return [[name, cleaned(item, { key: name, depth: depth + 1, isNames: within, faults })]];
  });
  return Object.fromEntries(entries);
}

function cleanedText(text: string, { key, isNames, faults }: Place): string {
  if (!isNames && FOR_READERS.has(key)) return stripHidden(text);
  if (key === '$ref' && !isNames && !text.startsWith('#')) {
    faults.push(`its schema refers to ${JSON.stringify(text.slice(0, 200))}, which is not in it`);
  }
  if (hasHidden(text)) faults.push('a value in its schema has hidden characters');
  return text;
}

function isSchema(value: Json | undefined): value is JsonObject {
  return isObject(value);
}

function no(problem: string): UsableSchema {
  return { ok: false, problem };
}
