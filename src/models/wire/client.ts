import { createParser } from 'eventsource-parser';
import { isObject } from '../../core/json.js';
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

/** Returns the URL without trailing slashes. Throws a `TypeError` for an unusable URL. */
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
      `The base URL of the model provider is not an http(s) URL; write for example ${example}.`,
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
