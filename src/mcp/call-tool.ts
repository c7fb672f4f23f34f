import { z } from 'zod';
import type { BlobStore } from '../storage/blob-store.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { isObject, type JsonObject } from '../core/json.js';
import { removeAbsentNulls } from '../output/absent-nulls.js';
import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { ToolError } from '../tools/tool-error.js';
import { isRefusedResult } from './call-faults.js';
import { validatingExecute } from '../tools/define-tool.js';
import type { Tool } from '../tools/tool.js';
import { stripHidden } from './hidden-text.js';
import { resultText } from './result-text.js';
import { checkBySchema, getUncheckedReason } from '../output/schema-check.js';
import type { McpSession } from './session.js';

/** Creates an executable tool of an MCP server: each call is one request to the server. */
export function callTool(pinned: ToolDefinition, session: McpSession, blobs: BlobStore): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts, mcp } = pinned;
  const input = argumentsOf(parameters);
  const executeParsed: Tool['executeParsed'] = async (given, context) => {
    const { idempotencyKey, signal } = context;
    const args = isArgs(given) ? given : {};
    const answer = await session.call(mcp?.tool ?? name, args, { idempotencyKey, signal });
    const { isError, text } = await resultText(answer, blobs).catch((error: unknown) => {
      const { message } = normalizeError(error);
      throw new CallFault('unanswered', `the result of ${name} cannot be read: ${message}`);
    });
    if (isError && effect !== 'read' && isRefusedResult(text)) {
      throw new CallFault('unanswered', text);
    }
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

/**
 * Returns a note for the model, and logs it, if the schema cannot check the arguments; else an
 * empty text.
 */
function uncheckedNote(parameters: JsonObject, log: (message: string) => void): string {
  const why = getUncheckedReason(parameters);
  if (why === undefined) return '';
  const note = `the arguments were sent unchecked, because the tool's schema cannot be used here: ${stripHidden(why)}`;
  log(note);
  return `\n[${note}]`;
}

/**
 * Returns the check of a call's arguments against the pinned JSON schema, before anything is sent.
 * Nulls that represent absent values are removed, so that rules and people see what is sent. An
 * unusable schema accepts everything, because the server also
 * checks.
 */
export function argumentsOf(parameters: JsonObject): z.ZodObject {
  return z
    .looseObject({})
    .overwrite((value) => presentOnly(value, parameters))
    .superRefine(async (value, context) => {
      const given = isArgs(value) ? value : {};
      const fault = await checkBySchema(parameters, given);
      if (fault !== null) context.addIssue({ code: 'custom', message: fault });
    });
}

/** Removes nulls that represent absent values: models write them, and most servers refuse them. */
function presentOnly(value: unknown, parameters: JsonObject): JsonObject {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- arguments came as JSON
  const given = (isObject(value) ? value : {}) as JsonObject;
  const present = removeAbsentNulls(given, parameters);
  return isArgs(present) ? present : given;
}

function isArgs(value: unknown): value is JsonObject {
  return isObject(value);
}
