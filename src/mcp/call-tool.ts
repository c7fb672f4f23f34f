import { z } from 'zod';
import type { BlobStore } from '../storage/blob-store.js';
import type { ToolDefinition } from '../core/definition/definition.js';
import { isObject, type JsonObject } from '../core/json.js';
import { withoutAbsentNulls } from '../output/absent-nulls.js';
import { ToolError } from '../tools/tool-error.js';
import { validatingExecute } from '../tools/define-tool.js';
import type { Tool } from '../tools/tool.js';
import { shown } from './hidden-text.js';
import { resultText } from './result-text.js';
import { schemaCheck, uncheckedBecause } from '../output/schema-check.js';
import type { McpSession } from './session.js';

/** A tool of an MCP server as perdure executes tools: each call is one request to the server. */
export function callTool(pinned: ToolDefinition, session: McpSession, blobs: BlobStore): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts, mcp } = pinned;
  const input = argumentsOf(parameters);
  const executeParsed: Tool['executeParsed'] = async (given, context) => {
    const { idempotencyKey, signal } = context;
    const args = presentOnly(given, parameters);
    const answer = await session.call(mcp?.tool ?? name, args, { idempotencyKey, signal });
    const { isError, text } = await resultText(answer, blobs);
    const result = text + uncheckedNote(parameters, (note) => context.log(note));
    if (isError) throw new ToolError(result);
    return result;
  };
  return {
    name,
    description,
    input,
    parameters,
    effect,
    timeoutMs,
    heartbeatMs,
    attempts,
    execute: validatingExecute({ name, input }, executeParsed),
    executeParsed,
  };
}

/** For the model, and for whoever reads the worker's log. */
function uncheckedNote(parameters: JsonObject, log: (message: string) => void): string {
  const why = uncheckedBecause(parameters);
  if (why === undefined) return '';
  const note = `the arguments were sent unchecked, for the tool's schema cannot be used here: ${shown(why)}`;
  log(note);
  return `\n[${note}]`;
}

/**
 * The check of a call's arguments before anything is sent: by the pinned JSON schema, nulls that stand
 * for absent ones apart. A schema that cannot be checked lets everything pass, for the server judges too.
 */
export function argumentsOf(parameters: JsonObject): z.ZodObject {
  return z.looseObject({}).superRefine(async (value, context) => {
    const fault = await schemaCheck(parameters, presentOnly(value, parameters));
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/** Models write null for what they leave out; most servers take null for a value, and refuse it. */
function presentOnly(value: unknown, parameters: JsonObject): JsonObject {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- arguments came as JSON
  const given = (isObject(value) ? value : {}) as JsonObject;
  const present = withoutAbsentNulls(given, parameters);
  return isArgs(present) ? present : given;
}

function isArgs(value: unknown): value is JsonObject {
  return isObject(value);
}
