import { ModelError } from '../model-error.js';
import type { CallPlace } from './errors.js';
import { sample } from '../sample.js';

/** Node's and undici's codes by what they mean to an operator. */
const TYPES: Readonly<Record<string, string>> = {
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  ECONNREFUSED: 'connection_refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
};

/** Deeper chains do not occur; a cycle must not hang. */
const DEEPEST_CAUSE = 8;

/** The error and its causes, outermost first. */
function chain(error: unknown): readonly Error[] {
  const errors: Error[] = [];
  let next = error;
  while (next instanceof Error && errors.length < DEEPEST_CAUSE) {
    errors.push(next);
    next = next.cause;
  }
  return errors;
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/**
 * The `ModelError` for a request that got no whole answer: refused, reset, name not resolved, cut
 * in mid-body. All of them may pass, so all are `retry`. The causes are told by name and code only
 * in the message: kept as `cause`, they would carry foreign texts into the history.
 */
export function transportError(error: unknown, place: CallPlace): ModelError {
  const errors = chain(error);
  const code = errors.map(codeOf).find((item) => item !== undefined);
  const type = (code === undefined ? undefined : TYPES[code]) ?? 'connection';
  const innermost = errors.at(-1)?.message ?? String(error);
  const said = sample(code === undefined ? innermost : `${code} ${innermost}`);
  return new ModelError(`No whole answer from ${place.baseUrl}: ${said}`, { kind: 'retry', type });
}
