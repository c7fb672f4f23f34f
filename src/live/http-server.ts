import { type IncomingMessage, type Server, createServer } from 'node:http';
import { type Socket, isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { type HttpBindings, getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { visible } from '../core/state/summaries.js';
import { isLoopback, show, visibleJson } from '../core/text/text.js';
import {
  type LimitsInForce,
  type ListenSettings,
  type Refusal,
  type TokenScope,
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

/** A request for the stream of a run. */
interface LiveRequest {
  readonly id: string;
  /** The position to start after; empty if none is given. */
  readonly after: string;
}

/** A request, with what a route needs to answer it. */
export interface Exchange extends LiveRequest {
  readonly limits: LimitsInForce;
  /** Aborted when the reader is gone, or the stream has ended. */
  readonly over: AbortController;
}

/** Answers a request about a run. */
export type Route = (exchange: Exchange) => Promise<Response | Refusal>;

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
  const app = createApp({ settings, routes, limits, connections });
  const listener = getRequestListener(app.fetch, {
    hostname: settings.host,
    // The process belongs to the worker, whose own code keeps Node's classes.
    overrideGlobalObjects: false,
  });
  server.on('request', (request, response) => {
    response.shouldKeepAlive = false;
    void listener(request, response);
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

/** Answers `GET /runs/:id/:route`. Reads nothing of a run for a request that it refuses. */
function createApp({ settings, routes, limits, connections }: ServerContext) {
  const app = new Hono<{ Bindings: HttpBindings; Variables: { scope: TokenScope } }>();
  app.use(async ({ env, set }, next) => {
    const scope = authorize(env.incoming, settings);
    const refusal = 'status' in scope ? scope : misfit(env.incoming);
    if (refusal !== null) return refused(refusal);
    if ('type' in scope) set('scope', scope);
    await next();
    return undefined;
  });
  for (const [name, route] of Object.entries(routes)) {
    app.get(`/runs/:id/${name}`, async ({ env: { incoming, outgoing }, get }) => {
      const requested = readRequest(incoming);
      if ('status' in requested) return refused(requested);
      const scope = get('scope');
      if (scope.type === 'run') {
        // The same response as for a missing run, so that a token does not reveal which runs exist.
        if (scope.id !== requested.id) {
          return refused({ status: 404, message: `there is no run "${visible(requested.id)}"` });
        }
        const expiry = setTimeout(() => outgoing.destroy(), scope.expiresAt - Date.now());
        outgoing.once('close', () => clearTimeout(expiry));
      }
      const refusal = connections.admit(incoming.socket);
      if (refusal !== null) return refused(refusal);
      const over = new AbortController();
      outgoing.once('close', () => over.abort());
      const answer = await route({ ...requested, limits, over });
      return answer instanceof Response ? answer : refused(answer);
    });
  }
  const known = Object.keys(routes).map((name) => `/runs/:id/${name}`);
  app.notFound(({ env }) => {
    const { pathname } = new URL(env.incoming.url ?? '', BASE);
    const message = `path: expected ${known.join(' or ')}, got ${show(pathname)}`;
    return refused({ status: 404, message });
  });
  app.onError(({ message }) => refused({ status: 500, message }));
  return app;
}

function refused({ status, message, retryAfter }: Refusal): Response {
  return new Response(`${visibleJson({ error: message })}\n`, {
    status,
    headers: {
      'content-type': 'application/json',
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      ...(status === 405 && { allow: 'GET' }),
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    },
  });
}

/** Returns the host for URLs: the name of the machine if the server listens on all addresses. */
function publicHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return hostname();
  return host.includes(':') && !isLoopback(host) ? `[${host}]` : host.replace(/^::1$/, '[::1]');
}

const BASE = 'http://localhost';

/** Returns why no route answers a request, whatever its path; null if one may. */
function misfit({ method, headers, url = '' }: IncomingMessage): Refusal | null {
  if (method !== 'GET') return { status: 405, message: `method: expected GET, got ${method}` };
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) {
    return bad('body: expected none, got one; send GET without a body');
  }
  if (url.startsWith('/') && URL.canParse(url, BASE)) return null;
  return bad(`path: expected one that begins with /runs/, got ${show(url)}`);
}

/** Reads the path and the query `?after=…` of a request, or returns why they are invalid. */
function readRequest({ headers, url = '' }: IncomingMessage): LiveRequest | Refusal {
  const { pathname, search, searchParams } = new URL(url, BASE);
  const [, , encoded = ''] = pathname.split('/');
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
  return { id, after: typeof last === 'string' && last !== '' ? last : after };
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
