import type { IncomingMessage } from 'node:http';
import { isLoopback, type ListenSettings } from './live-options.js';
import { verifyToken, type TokenScope } from './run-token.js';

/** Why a request is not served. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 429 | 503;
  readonly message: string;
  /** Seconds after which another try may succeed. */
  readonly retryAfter?: number;
}

/**
 * Who may ask at all, and for what. A page in a browser can have requests made to this machine under a
 * name of its own (DNS rebinding), or from its own origin: the headers show both.
 */
export function admissionOf(
  { headers }: Pick<IncomingMessage, 'headers'>,
  { host, token }: Pick<ListenSettings, 'host' | 'token'>,
): TokenScope | Refusal {
  const named = headers.host ?? '';
  if (isLoopback(host) && !isLoopback(nameIn(named))) {
    return { status: 403, message: 'Host is not this machine: ask by 127.0.0.1 or localhost' };
  }
  const { origin } = headers;
  if (origin !== undefined && !isOf(origin, named)) {
    return {
      status: 403,
      message: 'Origin is another one: pages of other sites may not read runs',
    };
  }
  if (token === '') return { type: 'all' };
  const [, given = ''] = /^Bearer (.*)$/i.exec(headers.authorization ?? '') ?? [];
  return (
    verifyToken(given, token) ?? {
      status: 401,
      message:
        'give the token of PERDURE_LIVE_TOKEN, or a token of this run that has not expired: ' +
        'Authorization: Bearer …',
    }
  );
}

/** Without the port. */
function nameIn(host: string): string {
  return host.replace(/:\d+$/, '');
}

function isOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
