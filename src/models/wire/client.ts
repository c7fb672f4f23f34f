import { createParser } from 'eventsource-parser';
import { isSecretName, learnSecrets } from '../../secrets/known.js';
import { findError, ProviderFailure } from './read-error.js';
import { parseBounded } from './reply-limits.js';

/** Sent as the key to a server that needs none. */
export const PLACEHOLDER_KEY = 'none';

/** The part of a provider's client that perdure uses. */
export interface WireClient {
  /**
   * Resolves with a successful response whose body is unread. Rejects with a `ProviderFailure` if
   * the provider sent an error.
   */
  post(path: string, options: { body: object; signal: AbortSignal }): Promise<Response>;
  /**
   * Returns the JSON values of a body's server-sent events, and `DONE` for the mark at their end.
   * Throws a `SyntaxError` for broken JSON, and a `ProviderFailure` for an error within the stream.
   */
  events(response: Response): AsyncIterable<unknown>;
}

/** Stands for the mark at the end of a stream, `[DONE]`. */
export const DONE = Symbol('done');

/** Returns the values of a body's server-sent events: the `events` of every client. */
export async function* events({ body, headers }: Response): AsyncGenerator {
  if (body === null) return;
  let isDone = false;
  for await (const { data, name, isWhole } of readSse(body)) {
    const text = data.trim();
    if (isDone || text === '' || isKeepAlive(text)) continue;
    isDone = text.startsWith('[DONE]') || text === '"[DONE]"' || text === 'DONE';
    if (isDone) {
      yield DONE;
      continue;
    }
    let event: unknown;
    try {
      event = parseBounded(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      if (!isWhole) return;
      if (name === 'error') throw new ProviderFailure({ headers, error: text });
      throw error;
    }
    const failure = name === 'error' ? event : findError(event);
    if (failure !== undefined) throw new ProviderFailure({ headers, error: failure });
    yield event;
  }
}

/** Whether the data of an event only keeps the connection alive; none of it is JSON. */
function isKeepAlive(text: string): boolean {
  return text.length <= 64 && /^(?::|ping\b|keep-?alive|heartbeat|processing)/i.test(text);
}

interface SseEvent {
  readonly data: string;
  /** The name of the event; undefined for most. */
  readonly name: string | undefined;
  /** False for the last event if its final empty line is missing, so that it may be cut. */
  readonly isWhole: boolean;
}

/**
 * Yields the server-sent events in a body. A line that is JSON counts as an event too: some servers
 * send such lines alone, or between comments.
 */
export async function* readSse(body: AsyncIterable<Uint8Array>): AsyncGenerator<SseEvent> {
  const decoder = new TextDecoder();
  let ready: SseEvent[] = [];
  let isWhole = true;
  const parser = createParser({
    onEvent: ({ data, event }) => void ready.push({ data, name: event, isWhole }),
    onError({ line }) {
      if (line === undefined || !/^\s{0,16}[{[]/.test(line)) return;
      ready.push({ data: line, name: undefined, isWhole });
    },
  });
  let endsWithReturn = false;
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true });
    parser.feed(text);
    if (text !== '') endsWithReturn = text.endsWith('\r');
    yield* ready;
    ready = [];
  }
  // The parser treats a final CR as the first half of CRLF and waits.
  if (endsWithReturn) parser.feed('\n');
  isWhole = false;
  parser.feed('\n\n');
  yield* ready;
}

/** A provider's base URL. */
export interface BaseUrl {
  /** Without query and trailing slashes. */
  readonly url: string;
  /** The query, which follows the path of each request; empty, or it begins with `?`. */
  readonly search: string;
}

/** Names of a query's parameters that hold a secret, beside those of secret variables. */
const SIGNATURE = /^(?:sig|signature|code)$/i;

/** The paths of requests, which a copied address may contain. */
const REQUEST_PATHS = ['/chat/completions', '/completions', '/responses', '/messages'];

/**
 * Splits a base URL from its query, such as Azure's `?api-version=…`. Removes trailing slashes, and
 * the path of a request if the URL ends with one. A query is learned as secret where its name says
 * so. Throws a `TypeError` for an unusable URL.
 */
export function parseBaseUrl(
  text: string,
  {
    key = 'OPENAI_API_KEY',
    example = 'OPENAI_BASE_URL=http://127.0.0.1:11434/v1',
  }: { readonly key?: string; readonly example?: string } = {},
): BaseUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username || url?.password) {
    throw new TypeError(
      `The base URL of the model provider holds a user name or password; give the key as ${key}.`,
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `The base URL of the model provider is not an http(s) URL; write for example ${example}.`,
    );
  }
  const secrets = [...url.searchParams].filter(
    ([name]) => isSecretName(name) || SIGNATURE.test(name),
  );
  learnSecrets({ values: secrets.map(([, value]) => value) });
  const whole = removeSlashes(url.pathname);
  const request = REQUEST_PATHS.find((path) => whole.endsWith(path)) ?? '';
  const path = removeSlashes(whole.slice(0, whole.length - request.length));
  return { url: url.origin + path, search: url.search };
}

function removeSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** Throws a `TypeError` for a key that no HTTP header can carry; `apiKeyEnv` holds it. */
export function checkKey(key: string, apiKeyEnv: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new TypeError(
    `The API key of the model provider is empty or holds characters that no HTTP header can carry (a space, a line break?); correct ${apiKeyEnv}.`,
  );
}
