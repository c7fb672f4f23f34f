import { CallFault } from '../tools/arguments/call-fault.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { ToolError } from '../tools/tool-error.js';
import { STREAM_ENDED } from './guarded-transport.js';
import type { McpServer } from './mcp-server.js';

/** What never left this machine: nobody listens there, or there is no such place. */
const NO_WAY = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** What the SDK itself says about an answer that came. */
const ANSWERED: readonly string[] = [
  'INVALID_RESULT',
  'UNSUPPORTED_RESULT_TYPE',
  'INPUT_REQUIRED_ROUNDS_EXCEEDED',
];
const NOT_SENT: readonly string[] = ['NOT_CONNECTED', 'CAPABILITY_NOT_SUPPORTED'];

/**
 * What went wrong with a call, by what is known of its effect: a `ToolError` where the server answered,
 * a `CallFault` where nothing was sent or no answer came.
 */
export async function faultOf(error: unknown, server: McpServer): Promise<Error> {
  const { ProtocolError, SdkError, SdkHttpError } = await import('@modelcontextprotocol/client');
  const { message } = normalizeError(error);
  const said = `MCP server "${server.name}": ${message}`;
  if (ProtocolError.isInstance(error)) {
    return error.code === STREAM_ENDED ? new CallFault('unanswered', said) : new ToolError(said);
  }
  if (SdkHttpError.isInstance(error)) {
    const { status } = error;
    if (isRefusedKey(status)) return new CallFault('refused', refusedKey(server, status));
    const answer = `MCP server "${server.name}" answers with HTTP ${status}: ${message}`;
    // It did not look at the request: it lies elsewhere, the session is over, there are too many.
    const isTurnedAway = status >= 300 && status < 500;
    return new CallFault(isTurnedAway ? 'unsent' : 'unanswered', answer);
  }
  if (SdkError.isInstance(error)) {
    if (ANSWERED.includes(error.code)) return new ToolError(said);
    return new CallFault(NOT_SENT.includes(error.code) ? 'unsent' : 'unanswered', said);
  }
  return new CallFault(NO_WAY.has(causeCode(error)) ? 'unsent' : 'unanswered', said);
}

/** For people: what is wrong with the key, and where it comes from. */
export function refusedKey(server: McpServer, status: number): string {
  const begin = `MCP server "${server.name}" refuses (HTTP ${status})`;
  const variable = server.transport === 'http' ? server.authEnv : undefined;
  return variable === undefined
    ? `${begin}; it wants a key: name the variable that holds it by \`authEnv\``
    : `${begin}; is the key in ${variable} right?`;
}

/** HTTP statuses for a key that is missing, wrong or not enough. */
export function isRefusedKey(status: unknown): status is 401 | 403 {
  return status === 401 || status === 403;
}

/** The system's code behind `fetch failed`. */
function causeCode(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 4 && typeof current === 'object' && current !== null; depth += 1) {
    if ('code' in current && typeof current.code === 'string') return current.code;
    current = 'cause' in current ? current.cause : undefined;
  }
  return '';
}
