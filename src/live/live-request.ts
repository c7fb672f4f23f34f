import type { IncomingMessage } from 'node:http';
import { show } from '../core/text/format-value.js';
import type { Refusal } from './admission.js';

/** What a reader asks for: `GET /runs/:id/:route?after=…`. */
export interface LiveRequest {
  readonly id: string;
  readonly route: string;
  /** The position behind which to begin; empty where none is given. */
  readonly after: string;
}

/** Reads a request, or says what is wrong with it. `routes`: the names there are. */
export function readRequest(
  { method, headers, url = '' }: Pick<IncomingMessage, 'method' | 'headers' | 'url'>,
  routes: readonly string[],
): LiveRequest | Refusal {
  if (method !== 'GET') return { status: 405, message: `method: expected GET, got ${method}` };
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) {
    return bad('body: expected none; a GET has no body here');
  }
  if (!url.startsWith('/') || !URL.canParse(url, 'http://localhost')) {
    return bad(`path: expected /runs/:id/${routes.join(' or ')}, got ${show(url)}`);
  }
  const { pathname, search, searchParams } = new URL(url, 'http://localhost');
  const [, written = '', route = ''] = /^\/runs\/([^/]+)\/(\w+)$/.exec(pathname) ?? [];
  if (!routes.includes(route)) {
    const known = routes.map((one) => `/runs/:id/${one}`);
    return { status: 404, message: `there is only ${known.join(' and ')}` };
  }
  const id = decoded(written);
  if (id === null) return bad(`id: expected percent-encoded UTF-8, got ${show(written)}`);
  if (decoded(search) === null) {
    return bad(`query: expected percent-encoded UTF-8, got ${show(search)}`);
  }
  const unknown = [...searchParams.keys()].find((name) => name !== 'after');
  if (unknown !== undefined) return bad(`query: expected after=POSITION, got ${show(unknown)}`);
  const [after = '', ...more] = searchParams.getAll('after');
  if (more.length > 0) return bad('after: expected one position, got several');
  const last = headers['last-event-id'];
  // Browsers repeat the address with their first request, and add how far they have come since.
  return { id, route, after: typeof last === 'string' && last !== '' ? last : after };
}

/** Null for what is no percent-encoding of UTF-8. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function bad(message: string): Refusal {
  return { status: 400, message };
}
