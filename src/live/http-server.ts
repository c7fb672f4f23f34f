import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { type Socket, isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { visible } from '../core/state/summaries.js';
import { isLoopback, show, visibleJson } from '../core/text/text.js';
import {
  type LimitsInForce,
  type ListenSettings,
  type Refusal,
  authorize,
  defaultLimits,
} from './live-options.js';

/** Seconds after which a refused reader may try again. */
const RETRY_AFTER = 5;

/** The connections of a server, counted against its limits. */
interface Connections {
  /**
   * Admits a connection, which may read a stream until it is closed. Returns null, or the refusal.
   */
  admit(socket: Socket): Refusal | null;
}

/**
 * Keeps the connections of a server within its limits. Connections that read no stream are counted
 * separately, and only the newest of them stay open, so idle ones cannot keep readers out.
 */
function guardConnections(server: Server, limits: LimitsInForce): Connections {
  const waiting = new Set<Socket>();
  const reading = new Set<Duplex>();
  const streamsByClient = new Map<string, number>();

  server.on('connection', (socket) => {
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket));
    const [oldest] = waiting;
    if (waiting.size <= limits.waiting || oldest === undefined) return;
    waiting.delete(oldest);
    oldest.destroy();
  });
  // A second request on the connection of a stream would wait for the end of the stream.
  server.on('dropRequest', (_request, socket) => {
    if (reading.has(socket)) socket.destroy();
  });

  return {
    admit(socket) {
      const client = clientOf(socket);
      const own = streamsByClient.get(client) ?? 0;
      if (reading.size >= limits.streams) {
        const message = `streams: at most ${limits.streams} at once; try again later`;
        return { status: 503, message, retryAfter: RETRY_AFTER };
      }
      if (own >= limits.streamsPerClient) {
        const message = `streams: at most ${limits.streamsPerClient} per client at once; close some`;
        return { status: 429, message, retryAfter: RETRY_AFTER };
      }
      waiting.delete(socket);
      reading.add(socket);
      streamsByClient.set(client, own + 1);
      socket.once('close', () => {
        reading.delete(socket);
        const left = (streamsByClient.get(client) ?? 1) - 1;
        if (left > 0) streamsByClient.set(client, left);
        else streamsByClient.delete(client);
      });
      return null;
    },
  };
}

/**
 * Returns the address without the part that one machine may choose: the lower half of an IPv6
 * address.
 */
function clientOf({ remoteAddress = '' }: Socket): string {
  const address = remoteAddress
    .replace(/^::ffff:(?=\d+\.)/, '')
    .split('%', 1)
    .join('');
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...after];
  return all.slice(0, 4).join(':');
}

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

/** Proxies and readers close a connection that is silent for about a minute. */
const KEEP_ALIVE_MS = 15_000;

/** A response that continues for as long as it is read. */
interface LiveResponse {
  /** Aborts when the reader is gone. */
  readonly gone: AbortSignal;
  /** Resolves when the reader has room for more; rejects when it is gone. */
  write(text: string): Promise<void>;
  end(): void;
}

/**
 * Starts a response. `keepAlive` is sent regularly; readers ignore it. A reader that does not read
 * what was sent within `stalledMs` is disconnected; it may reconnect at its position.
 */
export function liveResponse(
  { request, response, limits }: Exchange,
  { type, keepAlive }: { readonly type: string; readonly keepAlive: string },
): LiveResponse {
  const gone = new AbortController();
  if (response.destroyed) {
    gone.abort();
    return {
      gone: gone.signal,
      write: () => Promise.reject(gone.signal.reason),
      end: () => undefined,
    };
  }
  response.writeHead(200, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
  });
  request.socket.setNoDelay(true);
  response.write(keepAlive);
  const timer = setInterval(() => {
    if (!response.writableNeedDrain) response.write(keepAlive);
  }, KEEP_ALIVE_MS);
  // An error is followed by `close`.
  response.on('error', () => undefined);
  response.once('close', () => {
    clearInterval(timer);
    gone.abort();
  });
  return {
    gone: gone.signal,
    async write(text) {
      gone.signal.throwIfAborted();
      if (response.write(text)) return;
      const stalled = setTimeout(() => response.destroy(), limits.stalledMs);
      try {
        await once(response, 'drain', { signal: gone.signal });
      } finally {
        clearTimeout(stalled);
      }
    },
    end: () => void response.end(),
  };
}
