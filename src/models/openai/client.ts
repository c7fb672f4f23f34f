import { createParser } from 'eventsource-parser';
import OpenAI, { APIError } from 'openai';
import { isObject } from '../../core/json.js';
import { ProviderFailure, type ProviderError } from './read-error.js';
import { parseBounded } from './reply-limits.js';

export const OPENAI_URL = 'https://api.openai.com/v1';
export const PLACEHOLDER_KEY = 'none';

/** The part of a provider's client that perdure uses. */
export interface OpenAiClient {
  /** Resolves with a successful response whose body is unread. */
  post(path: string, options: { body: object; signal: AbortSignal }): Promise<Response>;
  /**
   * Returns the JSON values of a body's server-sent events, up to `[DONE]`. Throws a `SyntaxError` for
   * broken JSON and an `APIError` or `ProviderFailure` for an error within the stream.
   */
  events(response: Response): AsyncIterable<unknown>;
}

export interface ClientSettings {
  readonly apiKey: string | undefined;
  /** The environment variable that the key comes from, for errors. */
  readonly apiKeyEnv: string;
  readonly timeoutMs: number;
}

/** Throws a `TypeError` for a key that no HTTP header can carry. Without a key, a placeholder is sent. */
export function createClient(
  baseUrl: string,
  { apiKey, apiKeyEnv, timeoutMs }: ClientSettings,
): OpenAiClient {
  const dispatcher = createNoTimeoutDispatcher();
  const client = new Client({
    apiKey: apiKey === undefined ? PLACEHOLDER_KEY : checkKey(apiKey, apiKeyEnv),
    baseURL: baseUrl,
    // Temporal retries, and nothing else does.
    maxRetries: 0,
    fetch: fetchWithShortErrors,
    timeout: timeoutMs,
    // The client would write bodies and broken streams to the console.
    logLevel: 'off',
    // A redirect would send the key and the prompt elsewhere.
    fetchOptions: { redirect: 'manual', ...(dispatcher !== undefined && { dispatcher }) },
  });
  return {
    post: (path, options) => client.post(path, options).asResponse(),
    events,
  };
}

/** OpenAI's client drops the text of an error body that is not in OpenAI's form; this one keeps it. */
class Client extends OpenAI {
  protected override makeStatusError(
    status: number,
    error: object | undefined,
    message: string | undefined,
    headers: Headers,
  ): APIError {
    const body = isObject(error) && error['error'] ? error : { error: error ?? message };
    return super.makeStatusError(status, body, undefined, headers);
  }
}

/** Returns the JSON values of a body's server-sent events. */
export async function* events({ body, headers }: Response): AsyncGenerator {
  if (body === null) return;
  let isDone = false;
  for await (const data of readSseData(body)) {
    isDone ||= data.startsWith('[DONE]');
    if (isDone) continue;
    const event = parseBounded(data);
    if (isObject(event) && event['error']) {
      throw new APIError(undefined, event['error'], undefined, headers);
    }
    yield event;
  }
}

/** Yields the data of the server-sent events in a body. An event without its final empty line is dropped. */
export async function* readSseData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => void ready.push(data) });
  let endsWithReturn = false;
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    parser.feed(text);
    if (text !== '') endsWithReturn = text.endsWith('\r');
    yield* ready;
    ready = [];
  }
  // The parser takes a last CR for the first half of CRLF and waits.
  if (endsWithReturn) parser.feed('\n');
  yield* ready;
}

/** Returns what the provider sent; undefined if the client threw for another reason. */
export function toProviderError(error: unknown): ProviderError | undefined {
  if (error instanceof ProviderFailure) return error.failure;
  if (!(error instanceof APIError) || !(error.headers instanceof Headers)) return undefined;
  const status: unknown = error.status;
  const failure = { headers: error.headers, error: error.error };
  return typeof status === 'number' ? { ...failure, status } : failure;
}

/** Returns the URL without trailing slashes. Throws a `TypeError` for one that cannot be used. */
export function normalizeBaseUrl(
  text: string,
  {
    key = 'OPENAI_API_KEY',
    example = 'OPENAI_BASE_URL=http://127.0.0.1:11434/v1',
  }: { readonly key?: string; readonly example?: string } = {},
): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username || url?.password) {
    throw new TypeError(
      `The base URL of the model provider holds a user name or password; give the key as ${key}.`,
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `The base URL of the model provider, "${text}", is not an http(s) URL; write for example ${example}.`,
    );
  }
  return text.replace(/\/+$/, '');
}

/** Returns the URL for messages, without its query, which may hold a secret. */
export function displayUrl(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/$/, '')}`;
}

/** Throws a `TypeError` for a key that no HTTP header can carry; `apiKeyEnv` holds it. */
export function checkKey(key: string, apiKeyEnv: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new TypeError(
    `The API key of the model provider is empty or holds characters that no HTTP header can carry (a space, a line break?); correct ${apiKeyEnv}.`,
  );
}

/** Where the types of `fetch` are the browser's, there is none. */
type Dispatcher = RequestInit extends { dispatcher?: infer D } ? NonNullable<D> : never;

/**
 * Creates a dispatcher without the timeouts of Node's `fetch`, which gives up when headers or the next
 * bytes take 300 s: a model that reasons for longer would be cut off on every attempt, at full price.
 * It uses the same connections; the caller has its own clocks. Returns undefined if a Node version
 * keeps its connections elsewhere; Node's timeouts hold then.
 */
export function createNoTimeoutDispatcher(): Dispatcher | undefined {
  const shared = getGlobalDispatcher();
  if (shared === undefined) return undefined;
  const dispatch: Dispatcher['dispatch'] = (options, handler) =>
    // Looked up again: a proxy may have been set since.
    (getGlobalDispatcher() ?? shared).dispatch(
      { ...options, headersTimeout: 0, bodyTimeout: 0 },
      handler,
    );
  const patient: unknown = { dispatch };
  return isDispatcher(patient) ? patient : undefined;
}

/** Where Node's `fetch`, and a package that replaces its connections, such as a proxy, keep them. */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1');

function getGlobalDispatcher(): Dispatcher | undefined {
  // Node sets it on the first use of `fetch` or its classes.
  void globalThis.Response;
  const dispatcher: unknown = Reflect.get(globalThis, GLOBAL_DISPATCHER);
  return isDispatcher(dispatcher) ? dispatcher : undefined;
}

/** `fetch` uses no other method of a dispatcher. */
function isDispatcher(value: unknown): value is Dispatcher {
  return isObject(value) && typeof value['dispatch'] === 'function';
}

/** The most bytes that are read of an error's body. */
const MOST_ERROR_BYTES = 256 * 1024;

/** Calls `fetch`, and truncates the body of an error, which may be endless. */
export async function fetchWithShortErrors(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, init);
  const { ok, body, status, statusText, headers } = response;
  if (ok || body === null) return response;
  let left = MOST_ERROR_BYTES;
  const head = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
  return new Response(body.pipeThrough(head), { status, statusText, headers });
}
