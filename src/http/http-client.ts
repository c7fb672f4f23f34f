import { EventSourceParserStream } from 'eventsource-parser/stream';
import { InputError, NoServerError } from '../core/errors.js';
import { isObject, parseJson, textField } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import { assertOptionNames } from '../validation/option-names.js';
import type { StreamEvent } from '../live/stream.js';
import {
  OPERATIONS,
  type Operation,
  type OperationInput,
  type OperationName,
  type OperationOutput,
  pathFields,
} from './operations.js';

/** Options of `httpClient`. */
export interface HttpClientOptions {
  /** The address of the server, such as `http://127.0.0.1:8788`. */
  readonly url: string;
  /** The key or the OIDC token of the principal. Default: none, for a server without keys. */
  readonly key?: string;
  /** How requests are sent; default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the wait for the answer. What was sent may still take effect. Default: none. */
  readonly signal?: AbortSignal;
}

/** Where a stream of events begins, and what ends it. */
export interface HttpEventsOptions extends CallOptions {
  /** The `position` of the last known event; `now`: only what comes later. Default: the beginning. */
  readonly after?: string;
}

/**
 * The operations of a server over HTTP. Each rejects with an `HttpRequestError` if the server refuses
 * it. A request that got no answer is repeated three times, which never has a second effect; then it
 * rejects with a `NoServerError` (`no_server`), or with the reason of its `signal`.
 */
export type HttpClient = {
  readonly [Name in OperationName]: (
    input: OperationInput<Name>,
    options?: CallOptions,
  ) => Promise<OperationOutput<Name>>;
} & {
  /**
   * Yields the events of a run, with replies while they are written, and ends with the run. It
   * connects again by itself, and continues at its position.
   */
  readonly events: (run: string, options?: HttpEventsOptions) => AsyncIterable<StreamEvent>;
};

/**
 * A server has refused a request, or failed on it.
 *
 * @example
 * ```ts
 * import { HttpRequestError, httpClient } from 'perdure/http';
 *
 * const api = httpClient({ url: 'http://127.0.0.1:8788' });
 * try {
 *   await api.getRun({ run: 'desk-1' });
 * } catch (error) {
 *   if (!(error instanceof HttpRequestError) || error.code !== 'no_run') throw error;
 *   console.log(error.message, error.fix);
 * }
 * ```
 */
export class HttpRequestError extends Error {
  override readonly name = 'HttpRequestError';
  /** The HTTP status. */
  readonly status: number;
  /** Stable, unlike the message. */
  readonly code: string;
  /** What to do; null if the message says all. */
  readonly fix: string | null;
  /** Why the run refused a decision; null for any other error. */
  readonly reason: string | null;

  constructor(status: number, body: unknown) {
    const error = isObject(body) && isObject(body['error']) ? body['error'] : {};
    super(textField(error, 'message') || `the server answered with status ${status}`);
    this.status = status;
    this.code = textField(error, 'code') || 'unexpected';
    this.fix = textField(error, 'fix') || null;
    this.reason = textField(error, 'reason') || null;
  }
}

const TRIES = 4;
const PAUSE_MS = 250;

/** Creates a client of a server; see `httpClient` of `perdure/http`. Throws an `InputError` for a wrong address. */
export function openHttpClient(given: HttpClientOptions): HttpClient {
  assertOptionNames<HttpClientOptions>(given, { url: true, key: true, fetch: true }, 'httpClient');
  const { url, key, fetch: send = (request: Request) => globalThis.fetch(request) } = given;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new InputError(
      `url: expected the address of a server, such as "http://127.0.0.1:8788", got ${show(url)}`,
    );
  }
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const call = async (
    operation: Operation,
    input: Readonly<Record<string, unknown>>,
    { signal }: CallOptions = {},
  ): Promise<unknown> => {
    const { path, body } = place(operation, input);
    // The same key with each try makes the tries one operation.
    const once = body === null ? {} : { 'idempotency-key': crypto.randomUUID() };
    const headers = { ...authorization, ...once, 'content-type': 'application/json' };
    for (let tries = 1; ; tries += 1) {
      const request = new Request(new URL(path, url), {
        method: operation.method.toUpperCase(),
        headers,
        ...(body !== null && { body }),
        ...(signal && { signal }),
      });
      const answer = await send(request).then(read, (error: unknown) => ({ lost: error }));
      const isLost = 'lost' in answer || answer.status === 503;
      if (isLost && tries < TRIES && signal?.aborted !== true) {
        await sleep(PAUSE_MS * 2 ** (tries - 1));
        continue;
      }
      if ('lost' in answer) throw signal?.aborted ? answer.lost : unanswered(answer.lost, url);
      if (answer.status >= 400) throw new HttpRequestError(answer.status, answer.value);
      return answer.value;
    }
  };
  const operations = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (input: Readonly<Record<string, unknown>>, options?: CallOptions) =>
      call(operation, input, options),
  ]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made from the table that its type is made from
  return {
    ...Object.fromEntries(operations),
    events: (run: string, options: HttpEventsOptions = {}) =>
      followEvents({ url, send, authorization }, run, options),
  } as HttpClient;
}

/** Returns the path of a request with its query, and its body; null if it has none. */
function place(
  { method, path, input: { shape } }: Operation,
  input: Readonly<Record<string, unknown>>,
): { readonly path: string; readonly body: string | null } {
  const inPath = pathFields(path);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(input[name])),
  );
  const rest = Object.entries(input).filter(
    ([name, value]) => !(inPath.includes(name) && name in shape) && value !== undefined,
  );
  if (method === 'post') return { path: filled, body: JSON.stringify(Object.fromEntries(rest)) };
  const query = new URLSearchParams(
    rest.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return { path: query === '' ? filled : `${filled}?${query}`, body: null };
}

/** Returns the error for a request that got no answer with any try. */
function unanswered(error: unknown, url: string): NoServerError {
  const causes = [error, error instanceof Error ? error.cause : undefined];
  const [why = 'no answer'] = causes.flatMap((one) => {
    const code = isObject(one) ? textField(one, 'code') : '';
    return code === '' ? [] : [code];
  });
  const reason = why === 'no answer' && error instanceof Error ? error.message : why;
  // No connection was made, so the server cannot have executed it.
  const effect =
    why === 'ECONNREFUSED' || why === 'ENOTFOUND'
      ? ''
      : '; a start or a message may still take effect';
  return new NoServerError(
    `no server answers at ${new URL(url).origin} (${reason}, ${TRIES} tries)${effect}; start one with: npx perdure serve, or correct \`url\``,
    { cause: error },
  );
}

async function read(response: Response): Promise<{ status: number; value: unknown }> {
  return { status: response.status, value: parseJson(await response.text()) };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

async function* followEvents(
  {
    url,
    send,
    authorization,
  }: {
    readonly url: string;
    readonly send: (request: Request) => Promise<Response>;
    readonly authorization: Readonly<Record<string, string>>;
  },
  run: string,
  { after = '', signal }: HttpEventsOptions,
): AsyncGenerator<StreamEvent, void, undefined> {
  let position = after;
  let pauseMs = PAUSE_MS;
  for (;;) {
    if (signal?.aborted) return;
    const path = `/v1/runs/${encodeURIComponent(run)}/events?after=${encodeURIComponent(position)}`;
    const request = new Request(new URL(path, url), {
      headers: authorization,
      ...(signal && { signal }),
    });
    try {
      const response = await send(request);
      if (response.status === 204) return;
      if (response.status !== 200 || response.body === null) {
        const { status, value } = await read(response);
        throw new HttpRequestError(status, value);
      }
      // The place of `now`, at which a new connection goes on.
      position = response.headers.get('last-event-id') ?? position;
      const parsed = response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream());
      for await (const { id = '', data } of parsed) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- sent by this version's server
        const event = { ...(parseJson(data) as object), position: id } as StreamEvent;
        position = id;
        pauseMs = PAUSE_MS;
        yield event;
        if (event.type === 'run-ended') return;
      }
    } catch (error) {
      if (signal?.aborted) return;
      const isFinal = error instanceof HttpRequestError && ![429, 503].includes(error.status);
      if (isFinal) throw error;
    }
    await sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
  }
}

const MAX_PAUSE_MS = 5_000;
