import { CallFault } from '../tools/call-fault.js';
import { normaliseError } from '../tools/normalise-error.js';
import { ToolError } from '../tools/tool-error.js';
import { STREAM_ENDED } from './transport.js';

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
export async function faultOf(
  error: unknown,
  name: string,
  hide: (text: string) => string,
): Promise<Error> {
  const { ProtocolError, SdkError, SdkHttpError } = await import('@modelcontextprotocol/client');
  const message = hide(normaliseError(error).message);
  const said = `MCP server "${name}": ${message}`;
  if (ProtocolError.isInstance(error)) {
    return error.code === STREAM_ENDED ? new CallFault('unanswered', said) : new ToolError(said);
  }
  if (SdkHttpError.isInstance(error)) {
    // It refused the request itself: the session is over, the key is wrong, there are too many.
    const refused = error.status >= 400 && error.status < 500;
    return new CallFault(refused ? 'unsent' : 'unanswered', said);
  }
  if (SdkError.isInstance(error)) {
    if (ANSWERED.includes(error.code)) return new ToolError(said);
    return new CallFault(NOT_SENT.includes(error.code) ? 'unsent' : 'unanswered', said);
  }
  return new CallFault(NO_WAY.has(causeCode(error)) ? 'unsent' : 'unanswered', said);
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
