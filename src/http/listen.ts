import { once } from 'node:events';
import { createServer } from 'node:http';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/text/json.js';
import { isLoopback, show } from '../core/text/text.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { HttpServer } from './create-server.js';

/** Where a server listens. */
export interface ListenOptions {
  /** The address; default 127.0.0.1. Without keys, it must be loopback. */
  readonly host?: string;
  /** The port; default: any free port. */
  readonly port?: number;
}

/** A server that listens. */
export interface Listening {
  /** Such as `http://127.0.0.1:8788`. */
  readonly url: string;
  /** Ends all connections, including streams; their readers may come back at their positions. */
  close(): Promise<void>;
}

const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
const MAX_CONNECTIONS = 10_000;
const MAX_PORT = 65_535;

/** Throws an `InputError` if the address lets other machines use a server without keys. */
export function checkHost(host: string, isVerified: boolean): void {
  if (isVerified || isLoopback(host)) return;
  throw new InputError(
    `host: expected 127.0.0.1 or another loopback address, since the server has no keys; got ${show(host)}; ` +
      'set PERDURE_SERVE_KEYS (name:key) or `serve` in the configuration, or omit the host',
  );
}

/** Serves HTTP with a server's fetch handler; see `listen` of `perdure/http`. */
export async function listen(
  server: Pick<HttpServer, 'fetch' | 'isVerified'>,
  options: ListenOptions,
): Promise<Listening> {
  assertOptionNames<ListenOptions>(options, { host: true, port: true }, 'listen');
  const { host = '127.0.0.1', port = 0 } = options;
  checkHost(host, server.isVerified);
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) {
    throw new InputError(
      `port: expected 1 to ${MAX_PORT}, or 0 for any free port; got ${show(port)}`,
    );
  }
  const { getRequestListener } = await import('@hono/node-server');
  const http = createServer(
    { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, noDelay: true },
    getRequestListener(server.fetch, { hostname: host }),
  );
  http.maxConnections = MAX_CONNECTIONS;
  http.listen(port, host);
  // Rejects with the error of the server, too.
  await once(http, 'listening').catch((cause: unknown) => {
    if (isObject(cause) && cause['code'] === 'EADDRINUSE') {
      const got = `${port}, at which another program listens on ${host}`;
      throw new InputError(`port: expected a free port, got ${got}; stop it, or choose another`, {
        cause,
      });
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InputError(`port: the server cannot listen at ${host}:${port}: ${why}`, { cause });
  });
  const address = http.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close() {
      const closed = once(http, 'close');
      http.close();
      http.closeAllConnections();
      await closed;
    },
  };
}
