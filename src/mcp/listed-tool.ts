import type { Effect, ToolDefinition } from '../core/definition/tool-definition.js';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  isObject,
  sha256Hex,
  isRecord,
} from '../core/text/json.js';
import { countHidden, percentDecoded, wellFormed, withoutHidden } from '../core/text/text.js';
import { orderedKeywords } from '../tools/arguments/check-arguments.js';
import type { McpServer } from './mcp-server.js';

/** Returns whether a text has hidden characters. */
export function hasHidden(text: string): boolean {
  return countHidden(text) > 0;
}

/** Removes hidden characters, with a note if there were any, and replaces lone surrogates. */
export function stripHidden(text: string): string {
  const plain = wellFormed(text);
  const found = countHidden(plain);
  const clean = withoutHidden(plain);
  if (found === 0) return clean;
  return `${clean} [${found} hidden ${found === 1 ? 'character' : 'characters'} removed]`;
}

/** A schema that models can use, or why they cannot. */
type UsableSchema =
  | { readonly ok: true; readonly schema: JsonObject }
  | { readonly ok: false; readonly problem: string };

const MAX_BYTES = 64 * 1024;
const MAX_LEVELS = 64;
/** Providers accept none of these at the root of a tool's arguments. */
const NOT_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];
/** Keywords with texts for readers, which do not constrain values. */
const FOR_READERS = new Set(['description', 'title', '$comment']);
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'example']);
/** Keywords that hold schemas by name. */
const BY_NAME = new Set(['properties', '$defs', 'definitions', 'patternProperties']);
/** Keywords that hold a list of schemas. */
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
/** Keywords that hold one schema. */
const SINGLE = new Set(['items', 'additionalProperties', 'contains', 'not', 'propertyNames']);
/** The annotation of an argument that clients over HTTP repeat as a header. */
const HEADER = 'x-mcp-header';
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const TYPES_OF_HEADERS = ['string', 'integer', 'boolean'];
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/**
 * Returns the schema of a tool's arguments for models: complete with its definitions, with keywords
 * in a fixed order, and without hidden characters in its texts for readers.
 */
function usableSchema(schema: JsonObject, transport: McpServer['transport']): UsableSchema {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > MAX_BYTES) return no(`its schema has ${bytes} bytes, more than ${MAX_BYTES}`);
  if (schema['type'] !== 'object') return no('its schema is not of type "object"');
  const keyword = NOT_AT_ROOT.find((each) => (schema[each] ?? null) !== null);
  if (keyword !== undefined) return no(`its schema has "${keyword}" at its root`);
  const faults: string[] = [];
  const headers = transport === 'http' ? new Set<string>() : null;
  const root = { key: '', depth: 0, kind: 'schema', isArgument: true, root: schema } as const;
  const clean = cleaned(schema, { ...root, headers, faults });
  const [fault] = faults;
  if (fault !== undefined) return no(fault);
  return { ok: true, schema: isRecord(clean) ? orderedKeywords(clean) : {} };
}

interface Place {
  /** The keyword or name that holds the value. */
  readonly key: string;
  readonly depth: number;
  /** Whether the value is a schema, a keyword's value, schemas by names of its author, or data. */
  readonly kind: 'schema' | 'keyword' | 'names' | 'data';
  /** Whether only `properties` lead to it, so that it is of one argument, or of a field of one. */
  readonly isArgument: boolean;
  /** The headers so far, in lower case; null for a server that gets none. */
  readonly headers: Set<string> | null;
  readonly root: JsonObject;
  readonly faults: string[];
}

function cleaned(value: Json, place: Place): Json {
  const { key, depth, kind, faults } = place;
  if (depth > MAX_LEVELS) {
    faults.push(`its schema is nested deeper than ${MAX_LEVELS} levels`);
    return null;
  }
  if (kind !== 'data') checkForm(value, place);
  if (typeof value === 'string') return cleanedText(value, place);
  if (Array.isArray(value)) {
    const inner = LISTS.has(key) || SINGLE.has(key) ? 'schema' : 'data';
    const kindOfItems = kind === 'keyword' ? inner : kind;
    const items = { ...place, depth: depth + 1, kind: kindOfItems, isArgument: false };
    return value.map((item: Json) => cleaned(item, items));
  }
  if (!isRecord(value)) return value;
  if (kind === 'schema' && HEADER in value) checkHeader(value, place);
  const entries = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    if (hasHidden(name)) faults.push('a name in its schema has hidden characters');
    const inner = kindWithin(kind, name);
    // Servers of other languages write absent keywords as null.
    const isAbsent = item === null && kind === 'schema' && name !== 'default' && name !== 'const';
    if (item === undefined || isAbsent) return [];
    const isArgument = place.isArgument && (kind === 'names' || name === 'properties');
    const within = { ...place, key: name, depth: depth + 1, kind: inner, isArgument };
    return [[name, cleaned(item, within)]];
  });
  const clean = Object.fromEntries(entries);
  return kind === 'schema' && lacksItems(clean) ? { ...clean, items: {} } : clean;
}

/** Whether a schema is of an array of anything that does not say so, which providers refuse. */
function lacksItems({ type, items, prefixItems }: JsonObject): boolean {
  const types: readonly Json[] = Array.isArray(type) ? type : [type ?? null];
  return types.includes('array') && items === undefined && prefixItems === undefined;
}

/** Returns the kind of a field's value, from the kind of the object that has the field. */
function kindWithin(kind: Place['kind'], name: string): Place['kind'] {
  if (kind === 'names') return 'schema';
  if (kind !== 'schema' || DATA.has(name)) return 'data';
  if (BY_NAME.has(name)) return 'names';
  return SINGLE.has(name) ? 'schema' : 'keyword';
}

/** Adds the fault of a value that no schema can have in its place: providers refuse the request. */
function checkForm(value: Json, { key, kind, faults }: Place): void {
  const fault = formFault(value, key, kind);
  if (fault !== null) faults.push(`its schema is invalid: ${fault}`);
}

/** Adds the fault of an argument that is annotated as a header and cannot be one: no client may use the tool. */
function checkHeader({ [HEADER]: header, type }: JsonObject, place: Place): void {
  const { headers, depth, isArgument, faults } = place;
  if (headers === null) return;
  const fault = (problem: string) => faults.push(`its schema is invalid: "${HEADER}" ${problem}`);
  if (!isArgument || depth === 0) fault('is not of an argument');
  if (typeof header !== 'string' || !HEADER_NAME.test(header)) return void fault('is no name');
  if (!TYPES_OF_HEADERS.some((each) => each === type)) fault('is of a type that no header has');
  if (headers.has(header.toLowerCase())) fault('names a header twice');
  headers.add(header.toLowerCase());
}

function formFault(value: Json, key: string, kind: Place['kind']): string | null {
  const name = JSON.stringify(key.slice(0, 100));
  if (kind === 'names') return isObject(value) ? null : `${name} is not an object`;
  if (kind === 'schema') {
    const isList = key === 'items' && Array.isArray(value);
    return isObject(value) || typeof value === 'boolean' || isList ? null : `${name} is no schema`;
  }
  const items: readonly Json[] | null = Array.isArray(value) ? value : null;
  if (LISTS.has(key)) return items !== null && items.length > 0 ? null : `${name} is not a list`;
  if (key === 'required') {
    return items?.every((each) => typeof each === 'string')
      ? null
      : '"required" is not a list of names';
  }
  if (key !== 'type') return null;
  const types = items ?? [value];
  const areTypes = types.every((each) => typeof each === 'string' && TYPES.has(each));
  return areTypes && types.length > 0 ? null : '"type" is not a type';
}

function cleanedText(text: string, { key, kind, root, faults }: Place): string {
  if (kind === 'keyword' && FOR_READERS.has(key)) return stripHidden(text);
  if (kind === 'keyword' && key === '$ref') {
    if (!text.startsWith('#')) {
      faults.push(`its schema refers to ${JSON.stringify(text.slice(0, 200))}, which is not in it`);
    } else if (text.startsWith('#/') && !isPlaceIn(root, text)) {
      faults.push(`its schema refers to ${JSON.stringify(text.slice(0, 200))}, which it lacks`);
    }
  }
  if (hasHidden(text)) faults.push('a value in its schema has hidden characters');
  return text;
}

/** Returns whether a JSON pointer, such as `#/$defs/Place`, has a target. */
function isPlaceIn(root: JsonObject, pointer: string): boolean {
  let place: unknown = root;
  for (const part of pointer.slice(2).split('/')) {
    const name = percentDecoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, name)) return false;
    place = Reflect.get(place, name);
  }
  return place !== null;
}

function no(problem: string): UsableSchema {
  return { ok: false, problem };
}

/** A tool as its server describes it. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly annotations: ToolAnnotations;
  /** SHA-256 in hex of the server's whole description of the tool. */
  readonly hash: string;
}

/** A tool that a model can use, or why no model can use it. */
type UsableTool =
  | { readonly ok: true; readonly definition: ToolDefinition }
  | { readonly ok: false; readonly problem: string };

const DESCRIPTION_CHARACTERS = 4_096;
/** Characters beyond these count as cut without being processed. */
const READ_CHARACTERS = 4 * DESCRIPTION_CHARACTERS;
/** A repeatable call is retried for about eight seconds, so a restarted server can recover. */
const ATTEMPTS = 6;
const HEARTBEAT_MS = 10_000;
/** Maximum characters of a tool's own name. */
const NAME_CHARACTERS = 1_000;

/** An entry of a server's list that cannot be a tool. */
export interface OddTool {
  /** Its name, or its place in the list if it has no usable name. */
  readonly name: string;
  readonly problem: string;
}

/** What a server lists, read tool by tool. */
export interface McpListing {
  readonly tools: readonly ListedTool[];
  /** The entries that are left out. */
  readonly odd: readonly OddTool[];
}

/** An entry of a list. Entries with the same `key` repeat each other. */
export type ReadTool = { readonly key: string } & (
  | { readonly ok: true; readonly tool: ListedTool }
  | { readonly ok: false; readonly odd: OddTool }
);

/** Reads an entry of `tools/list`, which may be any value; `place` is its place in the list. */
export function readTool(value: unknown, place: string): ReadTool {
  const given = isObject(value) ? value['name'] : undefined;
  const name = typeof given === 'string' && given.trim() !== '' ? given : `#${place}`;
  const odd = (problem: string): ReadTool => {
    return { ok: false, key: `odd ${name} ${problem}`, odd: { name, problem } };
  };
  if (name !== given) return odd('it has no name');
  if (name.length > NAME_CHARACTERS) {
    return odd(`its name has ${name.length} characters, more than ${NAME_CHARACTERS}`);
  }
  if (hasHidden(name)) return odd('its name has hidden characters');
  try {
    const tool = listedTool(value);
    if (tool === null) return odd('it has no `inputSchema`');
    return { ok: true, key: `${name} ${tool.hash}`, tool };
  } catch {
    return odd('it is nested too deeply to be read');
  }
}

/**
 * Converts an entry of `tools/list`. A null field counts as absent. Returns null if it is not a
 * tool.
 */
export function listedTool(value: unknown): ListedTool | null {
  const plain: Json = JSON.parse(JSON.stringify(value ?? null));
  if (!isRecord(plain)) return null;
  const { name, title, description, inputSchema, outputSchema, annotations } = withoutNulls(plain);
  if (typeof name !== 'string' || !isRecord(inputSchema)) return null;
  const hints = isRecord(annotations) ? withoutNulls(annotations) : annotations;
  const described = {
    name,
    title,
    description,
    inputSchema,
    outputSchema,
    annotations: hints,
  };
  return {
    name,
    description: textIn(description) || textIn(title),
    schema: inputSchema,
    annotations: isObject(hints) ? hints : {},
    hash: sha256Hex(canonicalJson(described)),
  };
}

function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
}

/** Returns the effect of a tool, based on the agent author's setting and the server's hints. */
export function effectOf({ effects }: McpServer, { name, annotations }: ListedTool): Effect {
  return toolEffect(Object.hasOwn(effects, name) ? effects[name] : undefined, annotations);
}

/** Returns the tool's definition for runs and models, or why no model can use it. */
export function usableTool(server: McpServer, tool: ListedTool): UsableTool {
  const schema = readSchema(tool.schema, server.transport);
  if (!schema.ok) return schema;
  const effect = effectOf(server, tool);
  const definition: ToolDefinition = {
    name: toolName(server.name, tool.name),
    description: modelDescription(server.name, tool.description),
    parameters: schema.schema,
    effect,
    timeoutMs: server.timeoutMs,
    heartbeatMs: HEARTBEAT_MS,
    attempts: effect === 'once' ? 1 : ATTEMPTS,
    ...(server.expiresMs !== undefined && { expiresMs: server.expiresMs }),
    mcp: { server: server.name, tool: tool.name, hash: tool.hash },
  };
  return { ok: true, definition };
}

/** Returns the schema of a tool for models. One that overflows the stack is too deep. */
export function readSchema(schema: JsonObject, transport: McpServer['transport']): UsableSchema {
  try {
    return usableSchema(schema, transport);
  } catch {
    return { ok: false, problem: 'its schema is nested too deeply' };
  }
}

function modelDescription(server: string, description: string): string {
  const read = description.slice(0, READ_CHARACTERS);
  const text = stripHidden(read).trim();
  const cut = text.length - DESCRIPTION_CHARACTERS + description.length - read.length;
  const kept = cut > 0 ? `${text.slice(0, DESCRIPTION_CHARACTERS)}… [${cut} characters cut]` : text;
  return `[MCP ${server}] ${kept || 'its server gives no description'}`;
}

function textIn(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** The hints of a server about a tool. They may be wrong or malicious. */
interface ToolAnnotations {
  readonly readOnlyHint?: unknown;
  readonly destructiveHint?: unknown;
  readonly idempotentHint?: unknown;
}

/**
 * Returns the trusted side effect of a tool. The default is `once`; only the agent's author can
 * relax it, and a hint that contradicts the author makes it `once` again:
 *
 * | author  | hint                                          | effect  |
 * | ------- | --------------------------------------------- | ------- |
 * | nothing | any, `readOnlyHint: true` too                 | `once`  |
 * | `read`  | `readOnlyHint: false`, `destructiveHint: true`| `once`  |
 * | `read`  | any other, or none                            | `read`  |
 * | `keyed` | `idempotentHint: false`                       | `once`  |
 * | `keyed` | any other, or none                            | `keyed` |
 * | `once`  | any                                           | `once`  |
 */
export function toolEffect(author: Effect | undefined, hints: ToolAnnotations = {}): Effect {
  const { readOnlyHint, destructiveHint, idempotentHint } = hints;
  switch (author) {
    case 'read':
      return isHint(readOnlyHint, true) && isHint(destructiveHint, false) ? 'read' : 'once';
    case 'keyed':
      return isHint(idempotentHint, true) ? 'keyed' : 'once';
    case 'once':
    case undefined:
      return 'once';
  }
}

/** Returns whether a hint is absent or has this value. A value of another type may mean anything. */
function isHint(hint: unknown, value: boolean): boolean {
  return hint === undefined || hint === null || hint === value;
}

const MAX_CHARACTERS = 64;
const SUFFIX_DIGITS = 8;

/**
 * Returns a tool's name for models: `<server>__<tool>`. Characters that providers refuse are
 * replaced, and long names are cut. Such a name ends in digits of the original name's hash, so
 * names stay distinct and are the same in every run.
 */
export function toolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`;
  const clean = plain.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  if (clean === plain && clean.length <= MAX_CHARACTERS) return clean;
  const suffix = `_${sha256Hex(tool).slice(0, SUFFIX_DIGITS)}`;
  return clean.slice(0, MAX_CHARACTERS - suffix.length) + suffix;
}
