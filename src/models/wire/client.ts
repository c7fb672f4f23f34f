import { createParser } from 'eventsource-parser';
import { isObject } from '../../core/json.js';
import { isSecretName } from '../../secrets/environment.js';
import { learnSecrets } from '../../secrets/known.js';
import { ProviderFailure } from './read-error.js';
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
   * Returns the JSON values of a body's server-sent events, up to `[DONE]`. Throws a `SyntaxError`
   * for broken JSON, and a `ProviderFailure` for an error within the stream.
   */
  events(response: Response): AsyncIterable<unknown>;
}

/** Returns the JSON values of a body's server-sent events: the `events` of every client. */
export async function* events({ body, headers }: Response): AsyncGenerator {
  if (body === null) return;
  let isDone = false;
  for await (const data of readSseData(body)) {
    isDone ||= data.startsWith('[DONE]');
    if (isDone) continue;
    const event = parseBounded(data);
    if (isObject(event) && event['error']) {
      throw new ProviderFailure({ headers, error: event['error'] });
    }
    yield event;
  }
}

/**
 * Yields the data of the server-sent events in a body. An event without its final empty line is
 * dropped.
 */
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
  // The parser treats a final CR as the first half of CRLF and waits.
  if (endsWithReturn) parser.feed('\n');
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
