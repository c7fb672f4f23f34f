import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { visibleJson } from '../core/text/hidden.js';
import { visible } from '../core/text/summaries.js';
import { authorize, type Refusal } from './admission.js';
import { guardConnections, type Connections } from './connections.js';
import { defaultLimits, type LimitsInForce } from './live-limits.js';
import { isLoopback } from '../core/text/loopback.js';
import type { ListenSettings } from './live-options.js';
import { show } from '../core/text/format-value.js';

/** A request, with what a route needs to answer it. */
export interface Exchange {
  readonly requested: LiveRequest;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: LimitsInForce;
}

/** Answers a request about a run. Returns null, or a refusal if nothing was sent yet. */
export type Route = (exchange: Exchange) => Promise<Refusal | null>;

export interface LiveHttpServer {
  /** The address for other processes. */
  readonly url: string;
  /** Closes all connections, including those that are being read. */
  close(): Promise<void>;
}

/** How often the server checks for connections that are too slow. */
const CHECK_EVERY_MS = 1_000;

/** Serves `GET /runs/:id/:route`. Rejects if it cannot listen; the message names the address. */
export async function startHttpServer(
  settings: ListenSettings,
  routes: Readonly<Record<string, Route>>,
): Promise<LiveHttpServer> {
  const limits = { ...defaultLimits(), ...settings.limits };
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, limits.headersMs),
  });
  // Each connection serves one request and ends with its response.
  server.maxRequestsPerSocket = 1;
  const connections = guardConnections(server, limits);
  server.on('request', (request, response) => {
    response.shouldKeepAlive = false;
    respond({ settings, routes, limits, connections }, { request, response }).catch(() =>
      response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const at = `${settings.host}:${settings.port}`;
      reject(new Error(`live streams cannot be served at ${at}: ${cause.message}`, { cause }));
    });
    server.listen(settings.port, settings.host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : settings.port;
  return {
    url: `http://${publicHost(settings.host)}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ServerContext {
  readonly settings: ListenSettings;
  readonly routes: Readonly<Record<string, Route>>;
  readonly limits: LimitsInForce;
  readonly connections: Connections;
}

type Http = Pick<Exchange, 'request' | 'response'>;

async function respond(context: ServerContext, { request, response }: Http): Promise<void> {
  const refusal = await serve(context, { request, response });
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

/**
 * Returns null if the request is served, else the refusal. Reads nothing of a run for a refused
 * request.
 */
async function serve(
  { settings, routes, limits, connections }: ServerContext,
  { request, response }: Http,
): Promise<Refusal | null> {
  const scope = authorize(request, settings);
  if ('status' in scope) return scope;
  const requested = parseRequest(request, Object.keys(routes));
  if ('status' in requested) return requested;
  if (scope.type === 'run') {
    // The same response as for a missing run, so that a token does not reveal which runs exist.
    if (scope.id !== requested.id) {
      return { status: 404, message: `there is no run "${visible(requested.id)}"` };
    }
    const expiry = setTimeout(() => response.destroy(), scope.expiresAt - Date.now());
    response.once('close', () => clearTimeout(expiry));
  }
  const refusal = connections.admit(request.socket);
  if (refusal !== null) return refusal;
  return (await routes[requested.route]?.({ requested, request, response, limits })) ?? null;
}

/** Returns the host for URLs: the name of the machine if the server listens on all addresses. */
function publicHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return hostname();
  return host.includes(':') && !isLoopback(host) ? `[${host}]` : host.replace(/^::1$/, '[::1]');
}

/** A parsed request: `GET /runs/:id/:route?after=…`. */
interface LiveRequest {
  readonly id: string;
  readonly route: string;
  /** The position to start after; empty if none is given. */
  readonly after: string;
}

/** Parses a request, or returns why it is invalid. `routes` holds the names of all routes. */
function parseRequest(
  { method, headers, url = '' }: Pick<IncomingMessage, 'method' | 'headers' | 'url'>,
  routes: readonly string[],
): LiveRequest | Refusal {
  if (method !== 'GET') return { status: 405, message: `method: expected GET, got ${method}` };
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) {
    return bad('body: expected none, got one; send GET without a body');
  }
  if (!url.startsWith('/') || !URL.canParse(url, 'http://localhost')) {
    return bad(`path: expected /runs/:id/${routes.join(' or ')}, got ${show(url)}`);
  }
  const { pathname, search, searchParams } = new URL(url, 'http://localhost');
  const [, encoded = '', route = ''] = /^\/runs\/([^/]+)\/(\w+)$/.exec(pathname) ?? [];
  if (!routes.includes(route)) {
    const known = routes.map((name) => `/runs/:id/${name}`);
    return { status: 404, message: `path: expected ${known.join(' or ')}, got ${show(pathname)}` };
  }
  const id = decode(encoded);
  if (id === null) return bad(`id: expected percent-encoded UTF-8, got ${show(encoded)}`);
  if (decode(search) === null) {
    return bad(`query: expected percent-encoded UTF-8, got ${show(search)}`);
  }
  const unknown = [...searchParams.keys()].find((name) => name !== 'after');
  if (unknown !== undefined) return bad(`query: expected after=POSITION, got ${show(unknown)}`);
  const [after = '', ...more] = searchParams.getAll('after');
  if (more.length > 0) return bad('after: expected one position, got several');
  const last = headers['last-event-id'];
  // A browser that reconnects repeats the URL and adds its last position as a header.
  return { id, route, after: typeof last === 'string' && last !== '' ? last : after };
}

/** Returns null if the text is not percent-encoded UTF-8. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function bad(message: string): Refusal {
  return { status: 400, message };
}
