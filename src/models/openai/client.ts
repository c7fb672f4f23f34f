import OpenAI, { APIError } from 'openai';
import { isObject } from '../../core/json.js';
import type { ProviderError } from './errors.js';
import { parseBounded } from '../reply-limits.js';

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

type Dispatcher = NonNullable<RequestInit['dispatcher']>;

/** Where Node's own `fetch`, and whoever replaces its connections (a proxy, say), keep them. */
const GLOBAL_DISPATCHER = Symbol.for('undici.globalDispatcher.1');

/** All that `fetch` uses of one. */
function isDispatcher(value: unknown): value is Dispatcher {
  return isObject(value) && typeof value['dispatch'] === 'function';
}

function globalDispatcher(): Dispatcher | undefined {
  // Node puts it there when `fetch` or its kin are first touched.
  void globalThis.Response;
  const dispatcher: unknown = Reflect.get(globalThis, GLOBAL_DISPATCHER);
  return isDispatcher(dispatcher) ? dispatcher : undefined;
}

/**
 * Node's `fetch` gives up when headers take 300 s or a body is silent as long: a model that thinks
 * for longer would be cut off on every attempt, at full price. This sends requests by the same
 * connections without those two clocks; the caller keeps its own. Undefined where a Node version
 * keeps its connections elsewhere: its limits hold then.
 */
export function patientDispatcher(): Dispatcher | undefined {
  const shared = globalDispatcher();
  if (shared === undefined) return undefined;
  const dispatch: Dispatcher['dispatch'] = (options, handler) =>
    // Looked up again: a proxy may have been set since.
    (globalDispatcher() ?? shared).dispatch(
      { ...options, headersTimeout: 0, bodyTimeout: 0 },
      handler,
    );
  const patient: unknown = { dispatch };
  return isDispatcher(patient) ? patient : undefined;
}

/** Bytes of an error's body that are read; no honest one comes near it. */
const MOST_BYTES = 256 * 1024;

/** `fetch`, but of an answer that is an error only the beginning: its body may have no end. */
async function fetchWithShortErrors(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, init);
  const { ok, body, status, statusText, headers } = response;
  if (ok || body === null) return response;
  let left = MOST_BYTES;
  const head = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
  return new Response(body.pipeThrough(head), { status, statusText, headers });
}

/**
 * The data of the server-sent events in a body, in order. Lines end with CR, LF or both, wherever the
 * body is split; what stands behind the last empty line is no event. Takes time in proportion to the
 * body, however long its lines and however small its pieces.
 */
export async function* sseData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const lines = lineSplitter();
  let data: string[] = [];
  for await (const chunk of body) {
    for (const line of lines(decoder.decode(chunk, { stream: true }))) {
      if (line !== '') {
        const value = dataIn(line);
        if (value !== undefined) data.push(value);
      } else if (data.length > 0) {
        yield data.join('\n');
        data = [];
      }
    }
  }
}

/** The value of a `data` field; undefined for other fields and comments. */
function dataIn(line: string): string | undefined {
  if (!line.startsWith('data')) return undefined;
  if (line.length === 4) return '';
  if (line[4] !== ':') return undefined;
  return line.slice(line[5] === ' ' ? 6 : 5);
}

/** Gives the lines that a piece of text completes; what it leaves open waits for the next piece. */
function lineSplitter(): (piece: string) => Generator<string> {
  let open: string[] = [];
  let endedInReturn = false;
  return function* split(piece) {
    let from = endedInReturn && piece.startsWith('\n') ? 1 : 0;
    if (piece !== '') endedInReturn = piece.endsWith('\r');
    let feed = piece.indexOf('\n', from);
    let carriage = piece.indexOf('\r', from);
    while (feed >= 0 || carriage >= 0) {
      const isCarriage = carriage >= 0 && (feed < 0 || carriage < feed);
      const end = isCarriage ? carriage : feed;
      yield [...open, piece.slice(from, end)].join('');
      open = [];
      from = isCarriage && feed === carriage + 1 ? end + 2 : end + 1;
      // Each is looked for only once it has been passed, so that no text is searched twice.
      if (feed >= 0 && feed < from) feed = piece.indexOf('\n', from);
      if (carriage >= 0 && carriage < from) carriage = piece.indexOf('\r', from);
    }
    if (from < piece.length) open.push(piece.slice(from));
  };
}
