import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../core/text/loopback.js';
import type { ListenSettings } from './live-options.js';
import { verifyToken, type TokenScope } from './run-token.js';

/** Why a request is refused. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 429 | 503;
  readonly message: string;
  /** Seconds after which a retry may succeed. */
  readonly retryAfter?: number;
}

/**
 * Returns what a request may read, or why it is refused. Checks Host and Origin first: a web page
 * can make a browser send requests to this machine under a name of its own (DNS rebinding) or from
 * its own origin.
 */
export function authorize(
  { headers }: Pick<IncomingMessage, 'headers'>,
  { host, token }: Pick<ListenSettings, 'host' | 'token'>,
): TokenScope | Refusal {
  const requested = headers.host ?? '';
  if (isLoopback(host) && !isLoopback(withoutPort(requested))) {
    return {
      status: 403,
      message: 'Host: expected this machine; send the request to 127.0.0.1 or localhost',
    };
  }
  const { origin } = headers;
  if (origin !== undefined && !isOriginOf(origin, requested)) {
    return {
      status: 403,
      message: 'Origin: expected the origin of this server; pages of other sites may not read runs',
    };
  }
  if (token === '') return { type: 'all' };
  const [, given = ''] = /^Bearer (.*)$/i.exec(headers.authorization ?? '') ?? [];
  return (
    verifyToken(given, token) ?? {
      status: 401,
      message:
        'Authorization: expected "Bearer" with the token of PERDURE_LIVE_TOKEN, or with a token of ' +
        'this run that has not expired',
    }
  );
}

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '');
}

function isOriginOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
