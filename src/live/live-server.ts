import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { refusalOf, type Refusal } from './admission.js';
import { isLoopback, type LivePlace } from './live-options.js';

/** Answers a request about a run; `@returns` why it does not, before anything was sent. */
export type Route = (
  id: string,
  request: IncomingMessage,
  response: ServerResponse,
) => Promise<Refusal | null>;

export interface LiveServer {
  /** By which others reach it. */
  readonly url: string;
  /** Breaks off what is being read. */
  close(): Promise<void>;
}

/** Serves `GET /runs/:id/:route`. Rejects where it cannot listen, with the place in the message. */
export async function startLiveServer(
  place: LivePlace,
  routes: Readonly<Record<string, Route>>,
): Promise<LiveServer> {
  const server = createServer((request, response) => {
    answer(place, routes, { request, response }).catch(() => response.destroy());
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

async function answer(
  place: LivePlace,
  routes: Readonly<Record<string, Route>>,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
): Promise<void> {
  const refusal = refusalOf(request, place) ?? (await routed(routes, request, response));
  if (refusal === null) return;
  const { status, message } = refusal;
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
  });
  response.end(`${JSON.stringify({ error: message })}\n`);
}

async function routed(
  routes: Readonly<Record<string, Route>>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Refusal | null> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  const [, written = '', name = ''] = /^\/runs\/([^/]+)\/(\w+)$/.exec(pathname) ?? [];
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  const id = decoded(written);
  if (route !== undefined && id !== '') return await route(id, request, response);
  const known = Object.keys(routes).map((one) => `/runs/:id/${one}`);
  return { status: 404, message: `there is only ${known.join(' and ')}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** Who listens everywhere is reached by the machine's name. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return hostname();
  return host.includes(':') && !isLoopback(host) ? `[${host}]` : host.replace(/^::1$/, '[::1]');
}
