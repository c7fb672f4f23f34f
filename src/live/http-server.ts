import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { visibleJson } from '../core/text/hidden.js';
import { visible } from '../core/text/summaries.js';
import { admissionOf, type Refusal } from './admission.js';
import { guardConnections, type Connections } from './connections.js';
import { defaultLimits, type LiveLimits } from './live-limits.js';
import { isLoopback, type ListenSettings } from './live-options.js';
import { show } from '../core/text/format-value.js';

/** What a route is called with. */
export interface Exchange {
  readonly asked: LiveRequest;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: LiveLimits;
}

/** Answers a request about a run. Returns why it does not, before anything was sent, else null. */
export type Route = (exchange: Exchange) => Promise<Refusal | null>;

export interface LiveHttpServer {
  /** By which others reach it. */
  readonly url: string;
  /** Breaks off what is being read. */
  close(): Promise<void>;
}

/** How often the server looks for connections that have taken too long. */
const LOOK_MS = 1_000;

/** Serves `GET /runs/:id/:route`. Rejects where it cannot listen, with the place in the message. */
export async function startHttpServer(
  place: ListenSettings,
  routes: Readonly<Record<string, Route>>,
): Promise<LiveHttpServer> {
  const limits = { ...defaultLimits(), ...place.limits };
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: Math.min(LOOK_MS, limits.headersMs),
  });
  // A connection has one request: a stream ends with it, and an answer too.
  server.maxRequestsPerSocket = 1;
  const connections = guardConnections(server, limits);
  server.on('request', (request, response) => {
    response.shouldKeepAlive = false;
    answer({ place, routes, limits, connections }, { request, response }).catch(() =>
      response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const at = `${place.host}:${place.port}`;
      reject(new Error(`the live view cannot be served at ${at}: ${cause.message}`, { cause }));
    });
    server.listen(place.port, place.host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : place.port;
  return {
    url: `http://${reachable(place.host)}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Serving {
  readonly place: ListenSettings;
  readonly routes: Readonly<Record<string, Route>>;
  readonly limits: LiveLimits;
  readonly connections: Connections;
}

type Http = Pick<Exchange, 'request' | 'response'>;

async function answer(serving: Serving, { request, response }: Http): Promise<void> {
  const refusal = await served(serving, { request, response });
  if (refusal === null || response.destroyed) return;
  const { status, message, retryAfter } = refusal;
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(status === 405 && { allow: 'GET' }),
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
  });
  response.end(`${visibleJson({ error: message })}\n`);
}

/** Returns why a request is not served; null where it is. Nothing of a run is looked at before. */
async function served(
  { place, routes, limits, connections }: Serving,
  { request, response }: Http,
): Promise<Refusal | null> {
  const scope = admissionOf(request, place);
  if ('status' in scope) return scope;
  const asked = readRequest(request, Object.keys(routes));
  if ('status' in asked) return asked;
  if (scope.type === 'run') {
    // As of a run that is not there, so that nobody finds out which there are.
    if (scope.id !== asked.id) {
      return { status: 404, message: `there is no run "${visible(asked.id)}"` };
    }
    const expiry = setTimeout(() => response.destroy(), scope.expiresAt - Date.now());
    response.once('close', () => clearTimeout(expiry));
  }
  const refusal = connections.admit(request.socket);
  if (refusal !== null) return refusal;
  return (await routes[asked.route]?.({ asked, request, response, limits })) ?? null;
}

/** Who listens everywhere is reached by the machine's name. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return hostname();
  return host.includes(':') && !isLoopback(host) ? `[${host}]` : host.replace(/^::1$/, '[::1]');
}

/** What a reader asks for: `GET /runs/:id/:route?after=…`. */
interface LiveRequest {
  readonly id: string;
  readonly route: string;
  /** The position behind which to begin; empty where none is given. */
  readonly after: string;
}

/** Reads a request, or says what is wrong with it. `routes`: the names there are. */
function readRequest(
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
