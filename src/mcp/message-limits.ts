import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isObject } from '../core/json.js';

/** Bytes of one message. An attachment of 20 MB, the largest that is kept, has 27 MB as base64. */
export const MOST_MESSAGE_BYTES = 32 * 1024 * 1024;
/** What is wrong with a longer one, or with what would become one. */
export const TOO_LONG = `it sent a message of more than ${MOST_MESSAGE_BYTES} bytes`;
/** Parts of one result that are looked at. */
const MOST_PARTS = 1_000;
/** Tools in one page of a list, and bytes that they have. */
const MOST_TOOLS = 1_000;
const MOST_LIST_BYTES = 8 * 1024 * 1024;
/** Brackets and commas of one message; each may become a value of 50 bytes and more. */
const MOST_STRUCTURE = 2_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** What is wrong with a message as text, before anything is made of it; null where nothing is. */
export function textProblem(text: Uint8Array): string | null {
  if (text.length > MOST_MESSAGE_BYTES) return TOO_LONG;
  if (text.length <= MOST_STRUCTURE) return null;
  let structure = 0;
  for (const byte of text) {
    if (byte === COMMA || byte === BRACKET || byte === BRACE) structure += 1;
  }
  return structure > MOST_STRUCTURE
    ? `it sent a message of more than ${MOST_STRUCTURE} values`
    : null;
}

/**
 * A message with no more in it than is looked at: of a result with too many parts the first, and one that
 * says how many were left out; in the place of a list with too many tools an error.
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
  if (!Array.isArray(content) || content.length <= MOST_PARTS) return message;
  const left = `[${content.length - MOST_PARTS} of ${content.length} parts of this result were left out]`;
  const kept = [...content.slice(0, MOST_PARTS), { type: 'text', text: left }];
  return { ...message, result: { ...result, content: kept } };
}

function listProblem(tools: readonly unknown[]): string | null {
  if (tools.length > MOST_TOOLS) {
    return `it lists ${tools.length} tools at once; at most ${MOST_TOOLS} are read`;
  }
  const bytes = Buffer.byteLength(JSON.stringify(tools));
  return bytes > MOST_LIST_BYTES
    ? `the list of its tools has ${bytes} bytes; at most ${MOST_LIST_BYTES} are read`
    : null;
}
