import { z } from 'zod';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import type { AnsweredInput } from '../core/run/contract.js';
import {
  type Json,
  type JsonObject,
  canonicalJson,
  isObject,
  isTooDeep,
  parseJson,
  wellFormedJson,
  withinLevels,
} from '../core/text/json.js';
import { escapeJson, printable } from '../core/text/text.js';
import { checkOrSkip, getUncheckedReason } from '../output/schema-check.js';
import { removeAbsentNulls } from '../output/schemas.js';
import { redact } from '../secrets/redact.js';
import type { BlobStore } from '../storage/blob-store.js';
import { CallFault } from '../tools/arguments/check-arguments.js';
import { validatingExecute } from '../tools/define-tool.js';
import { ToolError } from '../tools/errors.js';
import { normalizeError } from '../tools/result/plain.js';
import type { Tool } from '../tools/tool.js';
import { isRefusedResult } from './connection.js';
import { isInputRequired, readInputRequired } from './input-required.js';
import { stripHidden } from './listed-tool.js';
import type { McpSession } from './session.js';

/** The result of `tools/call` as text. */
interface McpResult {
  readonly isError: boolean;
  readonly text: string;
}

/** Maximum bytes of one decoded part; a larger part is named but not stored. */
const MAX_BYTES = 20 * 1024 * 1024;
/** Maximum UTF-16 units of one result's text. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Maximum UTF-16 units of structured content that is compared with the texts. */
const MAX_COMPARED = 64 * 1024;

/**
 * Converts a server's result, which may be any value, into text for the model: the structured
 * content as JSON, else the texts. Images, sounds, and files go to the blob store, and the text
 * names them as attachments with their media type. Everything else becomes JSON, because the call
 * was executed: only `isError` makes the result a failure. Hidden characters become escapes, and
 * parts below 200 levels are omitted.
 */
export async function resultText(result: unknown, blobs: BlobStore): Promise<McpResult> {
  const { isError, content, structured } = readResult(withinLevels(result));
  const blocks = content.map((each) => toBlock(each));
  const rest = blocks.filter(({ type }) => type !== 'text');
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => textOf(text));
  const json = structured === undefined ? null : toJson(structured);
  // The texts of a structured result usually repeat it; those of an error describe the error.
  const isSame = json === null ? () => false : sameAs(json);
  const shown = json === null || isError ? texts.filter((each) => !isSame(each)) : [];
  const others: string[] = [];
  // A thousand pictures at once would be in memory in several forms each.
  // oxlint-disable-next-line no-await-in-loop -- one block at a time
  for (const block of rest) others.push(await nonText(block, blobs));
  const parts = [
    ...shown.map((each) => printable(each)),
    ...(json === null ? [] : [escapeJson(json)]),
    ...others,
  ];
  const none = isError ? 'the tool failed and gave no reason' : '(no result)';
  return { isError, text: bounded(parts) || none };
}

interface ReadResult {
  readonly isError: boolean;
  readonly content: readonly unknown[];
  /** Undefined if there is none. */
  readonly structured: unknown;
}

/** Fields of a result that say nothing to a model. */
const ABOUT_RESULT = new Set(['_meta', 'isError', 'resultType', 'content', 'structuredContent']);

/** Finds the parts of a result in any of the forms that servers use. */
function readResult(result: unknown): ReadResult {
  if (Array.isArray(result)) {
    const isContent = result.length > 0 && result.every((each) => isTyped(each));
    if (isContent) return { isError: false, content: result, structured: undefined };
    return { isError: false, content: [], structured: result };
  }
  if (!isObject(result)) {
    const content = typeof result === 'string' ? [result] : [];
    const structured = content.length > 0 ? undefined : (result ?? undefined);
    return { isError: false, content, structured };
  }
  const isError = result['isError'] === true || result['isError'] === 'true';
  const given = result['content'] ?? [];
  const content: readonly unknown[] = Array.isArray(given) ? given : [given];
  const structured = result['structuredContent'] ?? undefined;
  if (content.length > 0 || structured !== undefined) return { isError, content, structured };
  // The first version of the protocol had one field for the result.
  const { toolResult } = result;
  if (toolResult !== undefined) return { isError, content, structured: toolResult ?? undefined };
  const others = Object.entries(result).filter(
    ([name, value]) => !ABOUT_RESULT.has(name) && value !== null,
  );
  const rest = others.length === 0 ? undefined : Object.fromEntries(others);
  return { isError, content, structured: rest };
}

function isTyped(value: unknown): value is Block {
  return isObject(value) && typeof value['type'] === 'string';
}

/** Returns a part of the content as a block: a text, a known form, or `json` for any other value. */
function toBlock(part: unknown): Block {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (!isObject(part)) return { type: 'json', json: part };
  if (typeof part['type'] === 'string') return part;
  return typeof part['text'] === 'string'
    ? { type: 'text', text: part['text'] }
    : { type: 'json', json: part };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : toJson(value ?? '');
}

/** Returns any value of a parsed message as JSON. A text that is not JSON in JSON stays readable. */
function toJson(value: unknown): string {
  return typeof value === 'string' && value === '' ? '' : JSON.stringify(wellFormedJson(value));
}

/**
 * Joins the parts. If the text is too long, returns its start and the number of omitted characters.
 */
function bounded(parts: readonly string[]): string {
  const text = parts.join('\n');
  const omitted = text.length - MAX_CHARACTERS;
  return omitted > 0
    ? `${text.slice(0, MAX_CHARACTERS)}\n[${omitted} characters were omitted]`
    : text;
}

/** Returns a test of whether a text is this value as JSON. Large values are not compared. */
function sameAs(structured: string): (text: string) => boolean {
  if (structured.length > MAX_COMPARED) return () => false;
  const canonical = canonicalOf(structured);
  return (text) => text.length <= 2 * MAX_COMPARED && canonicalOf(text) === canonical;
}

function canonicalOf(json: string): string | undefined {
  const value = parseJson(json);
  if (isTooDeep(value)) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it came as JSON
  return value === undefined ? undefined : canonicalJson(value as Json);
}

type Block = Record<string, unknown>;

/** Stores a part that is not a text and returns the note that replaces it. */
async function nonText(block: Block, blobs: BlobStore): Promise<string> {
  switch (block['type']) {
    case 'image':
    case 'audio':
      return await store(asText(block['type']), { ...block, base64: asText(block['data']) }, blobs);
    case 'resource':
      return await resource(isObject(block['resource']) ? block['resource'] : {}, blobs);
    case 'resource_link': {
      const { uri, name, description, mimeType } = block;
      const about = [asText(name), asText(mimeType), asText(description)].filter(
        (each) => each !== '',
      );
      return printable(`[resource ${asText(uri)}: ${about.join(', ')}]`);
    }
    case 'json':
      return escapeJson(toJson('json' in block ? block['json'] : block));
    default:
      return escapeJson(toJson(block));
  }
}

async function resource(content: Block, blobs: BlobStore): Promise<string> {
  const { uri, text, blob } = content;
  if (typeof text === 'string') return printable(`[resource ${asText(uri)}]\n${text}`);
  return await store('file', { ...content, name: uri, base64: asText(blob) }, blobs);
}

/** Stores bytes and returns a note with the attachment by which the model can pass them on. */
async function store(
  kind: string,
  block: Block & { base64: string },
  blobs: BlobStore,
): Promise<string> {
  const { name } = block;
  const base64 = block.base64.replace(/^data:[^,]{0,200},/, '').replaceAll(/[\r\n\t ]+/g, '');
  const mediaType = printable(asText(block['mimeType']) || 'application/octet-stream');
  const size = Buffer.byteLength(base64, 'base64');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || size === 0) {
    return `[${kind} ${mediaType} that is not base64, omitted]`;
  }
  // A file with a secret cannot be stored with some of its bytes replaced.
  if (redact(base64) !== base64) return `[${kind} ${mediaType} that holds a secret, omitted]`;
  if (size > MAX_BYTES) return `[${kind} ${mediaType} of ${size} bytes, too large to store]`;
  const blob = await blobs.put(base64).catch((error: unknown) => normalizeError(error).message);
  // The call was executed, so it must not be repeated because an image cannot be stored.
  if (typeof blob === 'string') return `[${kind} ${mediaType} that could not be stored: ${blob}]`;
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  const attachment = { type, mediaType, blob, ...(typeof name === 'string' && { name }) };
  const stored = escapeJson(JSON.stringify(attachment));
  return `[${kind} of ${size} bytes, not shown; stored as attachment ${stored}]`;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

interface CallParts {
  readonly session: McpSession;
  readonly blobs: BlobStore;
  /** The answers to what the server has asked; undefined for a first call. */
  readonly answered?: AnsweredInput | undefined;
}

/**
 * Creates an executable tool of an MCP server: each call is one request to the server. A server that
 * asks for input first makes it throw `InputRequired`.
 */
export function callTool(pinned: ToolDefinition, { session, blobs, answered }: CallParts): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts, mcp } = pinned;
  let skipped: string | undefined;
  const input = argumentsOf(parameters, (why) => {
    skipped = why;
  });
  const executeParsed: Tool['executeParsed'] = async (given, context) => {
    const { idempotencyKey, signal } = context;
    const args = isArgs(given) ? given : {};
    const answer = await session.call(mcp?.tool ?? name, args, {
      idempotencyKey,
      signal,
      ...(answered && { answered }),
    });
    if (isInputRequired(answer)) throw readInputRequired(answer, mcp?.server ?? '');
    const { isError, text } = await resultText(answer, blobs).catch((error: unknown) => {
      const { message } = normalizeError(error);
      throw new CallFault('unanswered', `the result of ${name} cannot be read: ${message}`);
    });
    if (isError && effect !== 'read' && isRefusedResult(text)) {
      throw new CallFault('unanswered', text);
    }
    const result = text + uncheckedNote({ parameters, skipped }, (note) => context.log(note));
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
 * Returns a note for the model, and logs it, if the arguments were not checked, because the schema
 * cannot be used or the check was skipped; else an empty text.
 */
function uncheckedNote(
  { parameters, skipped }: Pick<ToolDefinition, 'parameters'> & { skipped: string | undefined },
  log: (message: string) => void,
): string {
  const unusable = getUncheckedReason(parameters);
  const why =
    unusable === undefined
      ? skipped
      : `the tool's schema cannot be used here: ${stripHidden(unusable)}`;
  if (why === undefined) return '';
  const note = `the arguments were sent unchecked, because ${why}`;
  log(note);
  return `\n[${note}]`;
}

/**
 * Returns the check of a call's arguments against the pinned JSON schema, before anything is sent.
 * Nulls that represent absent values are removed, so that rules and people see what is sent. An
 * unusable schema accepts everything, because the server also checks. `onCheck` gets why a check was
 * skipped, undefined if it was not.
 */
export function argumentsOf(
  parameters: JsonObject,
  onCheck?: (skipped: string | undefined) => void,
): z.ZodObject {
  return z
    .looseObject({})
    .overwrite((value) => presentOnly(value, parameters))
    .superRefine(async (value, context) => {
      const given = isArgs(value) ? value : {};
      const { fault, skipped } = await checkOrSkip(parameters, given);
      onCheck?.(skipped);
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
