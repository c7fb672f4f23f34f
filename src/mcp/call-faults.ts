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
/** The SDK's codes for a server that asks for input instead of executing the call. */
const INPUT_WANTED: readonly string[] = ['INPUT_REQUIRED_ROUNDS_EXCEEDED'];
/**
 * HTTP statuses of servers that did not process the request: it moved, it has a wrong form, or there
 * are too many. A session that has ended (404) may have ended during the call: one that ended
 * before is found when the tools are listed, right before each call that may change something.
 */
const TURNED_AWAY = [
  301, 307, 308, 400, 405, 406, 411, 413, 414, 415, 417, 421, 426, 428, 429, 431,
];
/** How servers report that a tool was executed and its result did not fit the tool's own schema. */
const RESULT_REFUSED =
  /^(?:MCP error -\d{1,9}: )?(?:output validation error|tool \S{1,200} has an output schema but|invalid structured (?:content|output)|structured content does not match)/i;
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
    const isUnanswered = error.code === STREAM_ENDED || isRefusedResult(message);
    return isUnanswered ? new CallFault('unanswered', text) : new ToolError(text);
  }
  if (SdkHttpError.isInstance(error)) {
    const { status } = error;
    if (isRefusedKey(status)) return new CallFault('refused', refusedKey(server, status));
    const answer = `MCP server "${server.name}" answers with HTTP ${status}: ${message}`;
    return new CallFault(TURNED_AWAY.includes(status) ? 'unsent' : 'unanswered', answer);
  }
  if (SdkError.isInstance(error)) {
    if (INPUT_WANTED.includes(error.code)) return new ToolError(text);
    return new CallFault(NOT_SENT.includes(error.code) ? 'unsent' : 'unanswered', text);
  }
  const isUnsent = UNREACHABLE.has(causeCode(error)) || message === 'Not connected';
  return new CallFault(isUnsent ? 'unsent' : 'unanswered', text);
}

/**
 * Returns whether a server's error says that it has executed the call and then refused the tool's
 * result. Whether the call had its effect is then unknown, or even certain.
 */
export function isRefusedResult(message: string): boolean {
  return RESULT_REFUSED.test(message.slice(0, 500));
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
    // A route that is lost while an answer is read tells nothing about the request.
    if ('syscall' in current && current.syscall === 'read') return '';
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = 'cause' in current ? current.cause : undefined;
  }
  return '';
}
