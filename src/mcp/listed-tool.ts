import { sha256Hex } from '../core/digest.js';
import type { Effect, ToolDefinition } from '../core/definition/definition.js';
import { canonicalJson, isObject, type Json, type JsonObject } from '../core/json.js';
import { shown } from './hidden-text.js';
import type { McpServer } from './mcp-server.js';
import { usableSchema } from './usable-schema.js';

/** A tool as its server describes it. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly annotations: ToolAnnotations;
  /** SHA-256 (hex) of all that the server says of it. */
  readonly hash: string;
}

export type UsableTool =
  | { readonly ok: true; readonly definition: ToolDefinition }
  | { readonly ok: false; readonly problem: string };

const DESCRIPTION_CHARACTERS = 4_096;
/** What is behind them is counted as cut, and looked at by nobody. */
const READ_CHARACTERS = 4 * DESCRIPTION_CHARACTERS;
/** A call that may be repeated is tried again for about eight seconds: a server that restarts is back by then. */
const ATTEMPTS = 6;
const HEARTBEAT_MS = 10_000;

/** What `tools/list` gave, in our words; null for what is no tool. */
export function listedTool(value: unknown): ListedTool | null {
  const plain: Json = JSON.parse(JSON.stringify(value ?? null));
  if (!isSchema(plain)) return null;
  const { name, title, description, inputSchema, outputSchema, annotations } = plain;
  if (typeof name !== 'string' || !isSchema(inputSchema)) return null;
  const said = { name, title, description, inputSchema, outputSchema, annotations };
  return {
    name,
    description: textIn(description) || textIn(title),
    schema: inputSchema,
    annotations: isObject(annotations) ? annotations : {},
    hash: sha256Hex(canonicalJson(said)),
  };
}

/** Returns the effect of a tool by its author's word here and the server's hints. */
export function effectOf({ effects }: McpServer, { name, annotations }: ListedTool): Effect {
  return toolEffect(Object.hasOwn(effects, name) ? effects[name] : undefined, annotations);
}

/** The tool as a run pins it and a model sees it, or why no model can be given it. */
export function usableTool(server: McpServer, tool: ListedTool): UsableTool {
  const schema = usableSchema(tool.schema);
  if (!schema.ok) return schema;
  const effect = effectOf(server, tool);
  const definition: ToolDefinition = {
    name: toolName(server.name, tool.name),
    description: described(server.name, tool.description),
    parameters: schema.schema,
    effect,
    timeoutMs: server.timeoutMs,
    heartbeatMs: HEARTBEAT_MS,
    attempts: effect === 'once' ? 1 : ATTEMPTS,
    mcp: { server: server.name, tool: tool.name, hash: tool.hash },
  };
  return { ok: true, definition };
}

function described(server: string, description: string): string {
  const read = description.slice(0, READ_CHARACTERS);
  const text = shown(read).trim();
  const cut = text.length - DESCRIPTION_CHARACTERS + description.length - read.length;
  const kept = cut > 0 ? `${text.slice(0, DESCRIPTION_CHARACTERS)}… [${cut} characters cut]` : text;
  return `[MCP ${server}] ${kept || 'its server says nothing about it'}`;
}

function isSchema(value: Json | undefined): value is JsonObject {
  return isObject(value);
}

function textIn(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** What a server says of a tool. It may be wrong, or lie. */
interface ToolAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
}

/**
 * What a tool does to the world, as far as it is trusted. Unknown is `once`; only the author's word
 * makes it less, and a hint that contradicts the author makes it `once` again:
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
      return readOnlyHint === false || destructiveHint === true ? 'once' : 'read';
    case 'keyed':
      return idempotentHint === false ? 'once' : 'keyed';
    case 'once':
    case undefined:
      return 'once';
  }
}

const MOST_CHARACTERS = 64;
const SUFFIX_DIGITS = 8;

/**
 * The name under which a model knows a tool of a server: `<server>__<tool>`. What providers do not
 * take in a name, or what makes it too long, is replaced; such a name ends in digits made of the
 * original one, so that no two become the same and each stays what it is from run to run.
 */
export function toolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`;
  const clean = plain.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  if (clean === plain && clean.length <= MOST_CHARACTERS) return clean;
  const suffix = `_${sha256Hex(tool).slice(0, SUFFIX_DIGITS)}`;
  return clean.slice(0, MOST_CHARACTERS - suffix.length) + suffix;
}
