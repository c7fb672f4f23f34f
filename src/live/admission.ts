import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isLoopback, type LivePlace } from './live-options.js';

/** Why a request is not served. */
export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 503;
  readonly message: string;
}

/**
 * Null for a request that may be served. A page in a browser can have requests made to this machine
 * under a name of its own (DNS rebinding), or from its own origin: both are told by their headers.
 */
export function refusalOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  { host, token }: Pick<LivePlace, 'host' | 'token'>,
): Refusal | null {
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
  if (token !== '' && !isToken(headers.authorization ?? '', token)) {
    return {
      status: 401,
      message: 'give the token of PERDURE_LIVE_TOKEN: Authorization: Bearer …',
    };
  }
  if (method !== 'GET') return { status: 405, message: `there is nothing to ${method} here` };
  return null;
}

/** Without the port. */
function nameIn(host: string): string {
  return host.replace(/:\d+$/, '');
}

function isOf(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

/** Takes as long whatever was given, so that its duration tells nothing about the token. */
function isToken(authorization: string, token: string): boolean {
  const [, given = ''] = /^Bearer (.*)$/i.exec(authorization) ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
