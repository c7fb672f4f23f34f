import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isObject } from '../core/json.js';

/** Maximum bytes of one message. The largest stored attachment, of 20 MB, has 27 MB as base64. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
/** The problem with a longer message. */
export const TOO_LONG = `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`;
/** Maximum parts of one result that are read. */
const MAX_PARTS = 1_000;
/** Maximum tools, and bytes of tools, in one page of a list. */
const MAX_TOOLS = 1_000;
const MAX_LIST_BYTES = 8 * 1024 * 1024;
/** Maximum brackets and commas in one message; each may become a value of 50 bytes or more. */
const MAX_STRUCTURE = 2_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** Returns the problem with a message's text before it is parsed, or null if there is none. */
export function mcpTextProblem(text: Uint8Array): string | null {
  if (text.length > MAX_MESSAGE_BYTES) return TOO_LONG;
  if (text.length <= MAX_STRUCTURE) return null;
  let structure = 0;
  for (const byte of text) {
    if (byte === COMMA || byte === BRACKET || byte === BRACE) structure += 1;
  }
  return structure > MAX_STRUCTURE
    ? `it sent a message of more than ${MAX_STRUCTURE} values`
    : null;
}

/**
 * Returns a message within the limits: a result with too many parts keeps the first ones and gets a
 * note with the number of omitted parts, and an error replaces a list with too many tools.
 */
export function withinLimits(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || !isObject(message.result)) return message;
  const { id, jsonrpc, result } = message;
  const { content, tools } = result;
  if (Array.isArray(tools)) {
    const problem = listProblem(tools);
    if (problem === null || id === undefined) return message;
    return { jsonrpc, id, error: { code: -32_603, message: problem } };
  }
  if (!Array.isArray(content) || content.length <= MAX_PARTS) return message;
  const note = `[${content.length - MAX_PARTS} of ${content.length} parts of this result were omitted]`;
  const kept = [...content.slice(0, MAX_PARTS), { type: 'text', text: note }];
  return { ...message, result: { ...result, content: kept } };
}

function listProblem(tools: readonly unknown[]): string | null {
  if (tools.length > MAX_TOOLS) {
    return `it lists ${tools.length} tools at once; at most ${MAX_TOOLS} are read`;
  }
  const bytes = Buffer.byteLength(JSON.stringify(tools));
  return bytes > MAX_LIST_BYTES
    ? `the list of its tools has ${bytes} bytes; at most ${MAX_LIST_BYTES} are read`
    : null;
}
