import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { ToolError } from '../tools/tool-error.js';
import { STREAM_ENDED } from './guarded-transport.js';
import type { McpServer } from './mcp-server.js';

/** Codes of requests that never reached a server: nothing listens there, or the host is unknown. */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** The SDK's codes for faults in a received answer. */
const ANSWERED: readonly string[] = [
  'INVALID_RESULT',
  'UNSUPPORTED_RESULT_TYPE',
  'INPUT_REQUIRED_ROUNDS_EXCEEDED',
];
const NOT_SENT: readonly string[] = ['NOT_CONNECTED', 'CAPABILITY_NOT_SUPPORTED'];

/**
 * Converts the error of a call according to its side effect: to a `ToolError` if the server
 * answered, or to a `CallFault` if nothing was sent or no answer arrived.
 */
export async function toCallFault(error: unknown, server: McpServer): Promise<Error> {
  const { ProtocolError, SdkError, SdkHttpError } = await import('@modelcontextprotocol/client');
  const { message } = normalizeError(error);
  const text = `MCP server "${server.name}": ${message}`;
  if (ProtocolError.isInstance(error)) {
    return error.code === STREAM_ENDED ? new CallFault('unanswered', text) : new ToolError(text);
  }
  if (SdkHttpError.isInstance(error)) {
    const { status } = error;
    if (isRefusedKey(status)) return new CallFault('refused', refusedKey(server, status));
    const answer = `MCP server "${server.name}" answers with HTTP ${status}: ${message}`;
    // The server did not process the request: it moved, the session has ended, or there are too
    // many.
    const isTurnedAway = status >= 300 && status < 500;
    return new CallFault(isTurnedAway ? 'unsent' : 'unanswered', answer);
  }
  if (SdkError.isInstance(error)) {
    if (ANSWERED.includes(error.code)) return new ToolError(text);
    return new CallFault(NOT_SENT.includes(error.code) ? 'unsent' : 'unanswered', text);
  }
  return new CallFault(UNREACHABLE.has(causeCode(error)) ? 'unsent' : 'unanswered', text);
}

/** Describes to people what is wrong with the key, and which variable holds it. */
export function refusedKey(server: McpServer, status: number): string {
  const begin = `MCP server "${server.name}" refuses (HTTP ${status})`;
  const variable = server.transport === 'http' ? server.authEnv : undefined;
  return variable === undefined
    ? `${begin}; it needs a key: name the variable that holds it with \`authEnv\``
    : `${begin}; check the key in ${variable}`;
}

/** Returns whether an HTTP status means that the key is missing, wrong, or not sufficient. */
export function isRefusedKey(status: unknown): status is 401 | 403 {
  return status === 401 || status === 403;
}

/** Returns the system's code among the causes of `fetch failed`, or an empty text. */
function causeCode(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 4 && typeof current === 'object' && current !== null; depth += 1) {
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = 'cause' in current ? current.cause : undefined;
  }
  return '';
}
