import { quoteLargeIntegers, isObject, parseJson } from '../core/text/json.js';
import { setMaxListeners } from 'node:events';
import { createParser } from 'eventsource-parser';
import {
  mcpTextProblem,
  TOO_LONG,
  MAX_MESSAGE_BYTES,
  isAnswer,
  isReadHere,
  lenientMessage,
  type FindRequest,
} from './wire-messages.js';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const JSON_TYPE = { 'content-type': 'application/json' };
/** Statuses with which servers also send the answer of a tool that refused its arguments. */
const ANSWERING_STATUSES = [400, 422];

/** What `cappedFetch` needs to know about its connection. */
interface CappedFetchOptions {
  /** Receives a description of a breach of the limits. */
  readonly onBreach: (reason: string) => void;
  readonly find: FindRequest;
}

/**
 * Returns a `fetch` for a server that may answer without end: a body that is one message, and each
 * event of a stream, may be at most as long as the longest message. Events are passed on whole,
 * because the SDK's reader scans an event again with each part of it. Messages are made readable
 * for the SDK (see `lenientMessage`), and an answer is found under any status and content type.
 */
export function cappedFetch({ onBreach, find }: CappedFetchOptions): typeof fetch {
  return async (url, init) => {
    // Each request adds a listener to the signal of its connection, which the next collection removes.
    if (init?.signal) setMaxListeners(0, init.signal);
    const response = await fetch(url, init);
    const { body, headers, ok } = response;
    if (body === null) return response;
    const request = postedRequest(init, find);
    if (ok && mediaType(headers) === 'text/event-stream') {
      const events = body.pipeThrough(wholeEvents(true, onBreach));
      return withBody(response, events.pipeThrough(lenientEvents(request, find)));
    }
    const whole = body.pipeThrough(wholeEvents(false, onBreach));
    if (request === null) return withBody(response, whole);
    return await readWhole(withBody(response, whole), request, find);
  };
}

/** Returns the request in progress that a POST carries, or null if it carries none. */
function postedRequest(init: RequestInit | undefined, find: FindRequest): ReturnType<FindRequest> {
  if (init?.method !== 'POST' || typeof init.body !== 'string') return null;
  const message = parseJson(init.body);
  return isObject(message) && 'method' in message ? find(message['id']) : null;
}

/** Returns the response to one request, with a body that the SDK can read if it is an answer. */
async function readWhole(
  response: Response,
  request: NonNullable<ReturnType<FindRequest>>,
  find: FindRequest,
): Promise<Response> {
  const { ok, status } = response;
  const text = await response.text();
  const isJson = mediaType(response.headers) === 'application/json';
  const messages = isReadHere(request.method) || isJson ? messagesIn(text) : [];
  const same = (): Response => withBody(response, text === '' ? null : text);
  if (!isReadHere(request.method)) {
    if (!ok || messages.length === 0) return same();
    return withBody(response, JSON.stringify(messages.map((each) => lenientMessage(each, find))));
  }
  const isOwn = (each: unknown): each is Record<string, unknown> =>
    isObject(each) && !('method' in each) && String(each['id']) === String(request.id);
  const answers = messages.filter((each) => isAnswer(each));
  // Or the only answer to the only request, whatever id it has.
  const answer = messages.find(isOwn) ?? (ok && answers.length === 1 ? answers[0] : undefined);
  if (answer === undefined) return same();
  const isResult = (answer['result'] ?? null) !== null;
  // Other statuses tell more about a failure: a session that has ended, a key that is refused.
  if (!ok && !isResult && !ANSWERING_STATUSES.includes(status)) return same();
  const others = messages.filter((each) => each !== answer);
  const read = [...others, { ...answer, id: request.id }].map((each) => lenientMessage(each, find));
  return withBody(response, JSON.stringify(read), { status: 200, headers: JSON_TYPE });
}

/** Returns the values of a body: JSON, a list of JSON, or the events of a stream. */
function messagesIn(text: string): readonly unknown[] {
  const value = parseJson(quoteLargeIntegers(text.replace(/^\uFEFF/, '')));
  if (value !== undefined) return Array.isArray(value) ? value : [value];
  const messages: unknown[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = parseJson(quoteLargeIntegers(data));
      if (message !== undefined) messages.push(message);
    },
  });
  parser.feed(`${text}\n\n`);
  return messages;
}

function mediaType(headers: Headers): string {
  return (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function withBody(
  response: Response,
  body: ConstructorParameters<typeof Response>[0],
  instead: { readonly status?: number; readonly headers?: Record<string, string> } = {},
): Response {
  const { statusText, url } = response;
  const { status = response.status, headers = response.headers } = instead;
  const same = new Response(body, { status, statusText, headers });
  // The URL of the response shows whether a redirect left the origin.
  return Object.defineProperty(same, 'url', { value: url });
}

/**
 * Makes the messages of whole events readable for the SDK. An answer without an id belongs to the
 * request that the stream answers.
 */
function lenientEvents(
  request: ReturnType<FindRequest>,
  find: FindRequest,
): TransformStream<Uint8Array, Uint8Array> {
  const withId = (message: unknown): unknown =>
    request !== null && isAnswer(message) && (message['id'] ?? null) === null
      ? { ...message, id: request.id }
      : message;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let written = '';
  const parser = createParser({
    onEvent: ({ id, event, data }) => {
      const message = lenientMessage(withId(parseJson(quoteLargeIntegers(data))), find);
      // The SDK skips events with a name of their own.
      const name = event === undefined || isAnswer(message) ? '' : `event: ${event}\n`;
      const text = message === undefined ? data : JSON.stringify(message);
      const lines = text.split('\n').map((line) => `data: ${line}\n`);
      written += `${id === undefined ? '' : `id: ${id}\n`}${name}${lines.join('')}\n`;
    },
    onRetry: (retryMs) => {
      written += `retry: ${retryMs}\n`;
    },
  });
  const read = (text: string): Uint8Array => {
    parser.feed(text);
    const events = encoder.encode(written);
    written = '';
    return events;
  };
  return new TransformStream({
    transform: (chunk, controller) => {
      controller.enqueue(read(decoder.decode(chunk, { stream: true })));
    },
    // A stream may end without the empty line that ends its last event.
    flush: (controller) => controller.enqueue(read(`${decoder.decode()}\n\n`)),
  });
}

/** Passes on whole events, or the whole body at its end. Fails if a message is too long. */
function wholeEvents(
  isStream: boolean,
  onBreach: (reason: string) => void,
): TransformStream<Uint8Array, Uint8Array> {
  let open: Uint8Array[] = [];
  let bytes = 0;
  let [last, before] = [0, 0];

  /** Returns the offset after the last event that ends in a chunk, or -1 if none does. */
  const lastEnd = (chunk: Uint8Array): number => {
    let end = -1;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const isBreak = byte === LINE_FEED || byte === CARRIAGE_RETURN;
      const isPair = byte === LINE_FEED && last === CARRIAGE_RETURN && before === LINE_FEED;
      if (isBreak && (byte === last || isPair)) end = at + 1;
      [before, last] = [last, byte];
    }
    return end;
  };
  const take = (end: Uint8Array): Uint8Array => {
    const whole = Buffer.concat([...open, end]);
    [open, bytes] = [[], 0];
    const problem = mcpTextProblem(whole);
    if (problem !== null) throw breach(problem);
    return whole;
  };
  const breach = (problem: string): Error => {
    onBreach(problem);
    return new Error(problem);
  };

  return new TransformStream({
    transform(chunk, controller) {
      const end = isStream ? lastEnd(chunk) : -1;
      if (end > 0) controller.enqueue(take(chunk.subarray(0, end)));
      const rest = end > 0 ? chunk.subarray(end) : chunk;
      open.push(rest);
      bytes += rest.length;
      if (bytes > MAX_MESSAGE_BYTES) throw breach(TOO_LONG);
    },
    flush(controller) {
      if (bytes > 0) controller.enqueue(take(new Uint8Array()));
    },
  });
}
