import type { HttpServer, ServerOptions } from './http/create-server.js';
import { type HttpClient, type HttpClientOptions, openHttpClient } from './http/http-client.js';
import type { ListenOptions, Listening } from './http/listen.js';

// The server
export type { HttpServer, ServerOptions } from './http/create-server.js';
export type { ListenOptions, Listening } from './http/listen.js';

// Who may use it
export type {
  AgentRights,
  OidcOptions,
  PrincipalOptions,
  Right,
  ServeLimits,
  ServeMcpOptions,
  ServeOptions,
} from './config.js';

// The client
export {
  HttpRequestError,
  type CallOptions,
  type HttpClient,
  type HttpClientOptions,
  type HttpEventsOptions,
} from './http/http-client.js';
export type {
  OperationInput,
  OperationName,
  OperationOutput,
  Operations,
} from './http/operations.js';
export type { AgentView, GraphView, RequestView } from './http/views.js';

/**
 * Creates an HTTP server as a fetch handler: the API, the console, and the interfaces for other clients. It
 * has no state, so any number of processes can serve the same runs. Rejects with an `InputError`
 * (`input`) for an invalid option or an unusable key, and with a `NoServerError` (`no_server`) if no
 * Temporal server answers.
 *
 * Importing this function does not load the server; the first call does.
 *
 * @example
 * ```ts
 * import { createServer, listen } from 'perdure/http';
 *
 * await using server = await createServer();
 * const { url } = await listen(server, { port: 8788 });
 * console.log(url);
 * ```
 */
export async function createServer(options: ServerOptions = {}): Promise<HttpServer> {
  const { openServer } = await import('./http/create-server.js');
  return await openServer(options);
}

/**
 * Serves a server's fetch handler with Node. Without keys, only this machine can use it: rejects with
 * an `InputError` (`input`) for any other address, and if the port is taken.
 *
 * @example
 * ```ts
 * import { createServer, listen } from 'perdure/http';
 *
 * const server = await createServer();
 * const listening = await listen(server);
 * process.once('SIGTERM', () => void listening.close().then(() => server.close()));
 * ```
 */
export async function listen(
  server: Pick<HttpServer, 'fetch' | 'isVerified'>,
  options: ListenOptions = {},
): Promise<Listening> {
  const { listen: start } = await import('./http/listen.js');
  return await start(server, options);
}

/**
 * Creates a client of a server, for programs without Temporal's SDK. It has one method for each
 * operation of the API.
 *
 * @example
 * ```ts
 * import { httpClient } from 'perdure/http';
 *
 * const api = httpClient({ url: 'http://127.0.0.1:8788' });
 * const { id } = await api.startRun({ agent: 'desk', message: 'Refund order 17' });
 * for await (const event of api.events(id)) {
 *   if (event.type === 'delta') process.stdout.write(event.text);
 * }
 * const { outcome } = await api.getResult({ run: id });
 * console.log(outcome?.answer);
 * ```
 */
export function httpClient(options: HttpClientOptions): HttpClient {
  return openHttpClient(options);
}
