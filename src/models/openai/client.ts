import OpenAI, { APIError } from 'openai';
import { isObject } from '../../core/json.js';
import type { ProviderError } from './errors.js';
import { patientDispatcher } from './no-timeout-dispatcher.js';
import { parseBounded } from '../reply-limits.js';
import { fetchWithShortErrors } from './short-errors.js';
import { sseData } from './sse-data.js';

export const OPENAI_URL = 'https://api.openai.com/v1';
const PLACEHOLDER_KEY = 'none';

/** The client drops the text of an error body that is not in OpenAI's form; this keeps it. */
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

/** All that is used of OpenAI's client. */
export interface OpenAiClient {
  /** Resolves with a successful response whose body nobody has read. */
  post(path: string, options: { body: object; signal: AbortSignal }): Promise<Response>;
  /** The JSON values of a body's server-sent events. */
  events(response: Response): AsyncIterable<unknown>;
}

/** The URL as it can be used. Throws a `TypeError` for one that cannot. */
export function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username || url?.password) {
    throw new TypeError(
      'The base URL of the model provider holds a user name or password; give the key as OPENAI_API_KEY.',
    );
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `The base URL of the model provider, "${text}", is no http(s) URL; write for example OPENAI_BASE_URL=http://127.0.0.1:11434/v1.`,
    );
  }
  return text.replace(/\/+$/, '');
}

/** Without what may be secret in it, for messages. */
export function shownUrl(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/$/, '')}`;
}

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new TypeError(
    'The API key of the model provider is empty or holds characters that no HTTP header can carry (a space, a line break?); correct OPENAI_API_KEY.',
  );
}

/** Throws a `TypeError` for a key that no header can carry. Without one a placeholder is sent. */
export function connect(
  baseUrl: string,
  { apiKey, timeoutMs }: { readonly apiKey: string | undefined; readonly timeoutMs: number },
): OpenAiClient {
  const dispatcher = patientDispatcher();
  const client = new Client({
    apiKey: apiKey === undefined ? PLACEHOLDER_KEY : checkedKey(apiKey),
    baseURL: baseUrl,
    // Temporal retries; nothing else does.
    maxRetries: 0,
    fetch: fetchWithShortErrors,
    timeout: timeoutMs,
    // The client would write bodies and broken streams to the console.
    logLevel: 'off',
    // A redirect would take the key and the prompt elsewhere.
    fetchOptions: { redirect: 'manual', ...(dispatcher !== undefined && { dispatcher }) },
  });
  return {
    post: (path, options) => client.post(path, options).asResponse(),
    events,
  };
}

/** Ends at `[DONE]`. Throws a `SyntaxError` for broken JSON, an `APIError` for an error within the stream. */
async function* events({ body, headers }: Response): AsyncGenerator {
  if (body === null) return;
  let isDone = false;
  for await (const data of sseData(body)) {
    isDone ||= data.startsWith('[DONE]');
    if (isDone) continue;
    const event = parseBounded(data);
    if (isObject(event) && event['error']) {
      throw new APIError(undefined, event['error'], undefined, headers);
    }
    yield event;
  }
}

/** What the provider sent, when that is what the client threw. */
export function sentError(error: unknown): ProviderError | undefined {
  if (!(error instanceof APIError) || !(error.headers instanceof Headers)) return undefined;
  const status: unknown = error.status;
  const failure = { headers: error.headers, error: error.error };
  return typeof status === 'number' ? { ...failure, status } : failure;
}
