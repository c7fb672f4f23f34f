import { sha256Hex } from '../core/digest.js';
import type { Effect, ToolDefinition } from '../core/definition/tool-definition.js';
import { canonicalJson, isObject, type Json, type JsonObject } from '../core/json.js';
import { hasHidden, stripHidden } from './hidden-text.js';
import type { McpServer } from './mcp-server.js';
import { usableSchema, type UsableSchema } from './usable-schema.js';

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
export type UsableTool =
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
  if (!isSchema(plain)) return null;
  const { name, title, description, inputSchema, outputSchema, annotations } = withoutNulls(plain);
  if (typeof name !== 'string' || !isSchema(inputSchema)) return null;
  const hints = isSchema(annotations) ? withoutNulls(annotations) : annotations;
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
  const schema = readSchema(tool.schema);
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
    mcp: { server: server.name, tool: tool.name, hash: tool.hash },
  };
  return { ok: true, definition };
}

/** Returns the schema of a tool for models. One that overflows the stack is too deep. */
function readSchema(schema: JsonObject): UsableSchema {
  try {
    return usableSchema(schema);
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

function isSchema(value: Json | undefined): value is JsonObject {
  return isObject(value);
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
