import { setImmediate as nextTurn } from 'node:timers/promises';
import { isObject, parseJson } from '../../core/text/json.js';
import {
  emitReply,
  ignoreDeltas,
  type EmitDelta,
  isModelError,
  type ModelReply,
} from '../model.js';
import type { WireApi, ReplySource } from './api.js';
import {
  type CallWatch,
  assertWithinLimits,
  parseBounded,
  ReplyTooLargeError,
} from './reply-limits.js';
import { DONE, type WireClient } from './client.js';
import { getRequestId, replyToError, unusableAnswer } from './errors.js';
import { findError, ProviderFailure } from './read-error.js';

/**
 * Maximum bytes of an answer, more than any legitimate one; a larger answer would only fill the
 * worker's memory.
 */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

interface Reading {
  readonly api: WireApi;
  readonly watch: CallWatch;
  readonly emit: EmitDelta;
  readonly client: Pick<WireClient, 'events'>;
}

interface BodyReading extends Reading {
  /** True if the request asked for a stream. */
  readonly streamed: boolean;
}

/** Reads a successful HTTP response as a reply; see `limitReply`. */
export async function readAnswer(
  response: Response,
  source: ReplySource,
  options: BodyReading,
): Promise<ModelReply> {
  return await limitReply(source, async () => await readBody(response, source, options));
}

/**
 * Reads a reply. One that exceeds a limit causes a `ModelError` of kind `request`: it has been paid
 * for, and a retry would be just as long.
 */
export async function limitReply(
  source: ReplySource,
  read: () => Promise<ModelReply>,
): Promise<ModelReply> {
  try {
    const reply = await read();
    assertWithinLimits(reply);
    return reply;
  } catch (error) {
    if (!(error instanceof ReplyTooLargeError)) throw error;
    const what = `sent a reply with ${error.message}; it is discarded. Limit \`maxOutputTokens\``;
    throw unusableAnswer(source, { kind: 'request', type: 'answer_too_large', what, text: '' });
  }
}

async function readBody(
  response: Response,
  source: ReplySource,
  options: BodyReading,
): Promise<ModelReply> {
  const { api, watch, emit } = options;
  let isStream = mayBeStream(response.headers, options.streamed);
  if (isStream) watch.progress();
  const metered = meter(response, (total) => {
    if (isStream) watch.progress();
    if (total > MAX_ANSWER_BYTES) {
      throw new ReplyTooLargeError(`more than ${MAX_ANSWER_BYTES} bytes`);
    }
  });
  const { head, body } = await openBody(metered);
  // Servers send streams and whole answers under any content type, asked for or not.
  isStream = STREAM.test(head) || (isStream && !WHOLE.test(head));
  if (!isStream) {
    const reply = parseReply(await body.text(), source, api);
    emitReply(reply, emit);
    return reply;
  }
  watch.progress();
  const { answer, isShown } = await assemble(options.client.events(body), source, options);
  const reply = readValue(answer, source, api);
  if (!isShown) emitReply(reply, emit);
  return reply;
}

/** The beginning of a stream's body: a field, or a comment. */
const STREAM = /^(?:data|event|retry|id|)\s?:/;
/** The beginning of a body that is not a stream: JSON, or a page. */
const WHOLE = /^[{["<]/;

/** Whether a response is a stream, according to its content type. */
function mayBeStream(headers: Headers, streamed: boolean): boolean {
  const type = headers.get('content-type') ?? '';
  if (type.includes('event-stream')) return true;
  return streamed && !type.includes('json') && !type.includes('html');
}

/**
 * Reads an unstreamed body. It may be anything: a proxy's HTML, incomplete JSON, JSON lines, or an
 * error with status 200.
 */
export function parseReply(text: string, source: ReplySource, api: WireApi): ModelReply {
  if (text.trimStart().startsWith('<')) {
    throw unusableAnswer(source, { type: 'html', what: 'sent a page, not an answer', text });
  }
  let value: unknown;
  try {
    value = parseBounded(text);
  } catch (error) {
    if (error instanceof ReplyTooLargeError) throw error;
    const lines = readLines(text);
    if (lines.length > 1) return parseLines(lines, source, api);
    throw unusableAnswer(source, { type: 'bad_json', what: 'sent broken JSON', text });
  }
  return readValue(value, source, api);
}

/** Reads the JSON lines that some servers send in place of events; empty for any other text. */
function readLines(text: string): readonly unknown[] {
  const values: unknown[] = [];
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\n', start);
    const line = text.slice(start, end === -1 ? text.length : end);
    start = end === -1 ? text.length : end + 1;
    if (line.trim() === '') continue;
    const value = parseJson(line);
    if (!isObject(value)) return [];
    values.push(value);
  }
  return values;
}

function parseLines(lines: readonly unknown[], source: ReplySource, api: WireApi): ModelReply {
  const assembly = api.assemble(ignoreDeltas, source);
  for (const line of lines) {
    const error = findError(line);
    if (error !== undefined) throw new ProviderFailure({ headers: source.headers, error });
    assembly.add(line);
  }
  if (assembly.isFinished()) return readValue(assembly.answer(), source, api);
  throw unusableAnswer(source, CUT);
}

/** A stream that ends without a finish reason or a mark. */
const CUT = {
  type: 'stream_cut',
  what: 'ended its stream before the answer was complete',
  text: '',
} as const;

/**
 * Reads an answer. It is paid for, so it counts even beside an error, and an empty one counts where
 * the model may have nothing to say.
 */
function readValue(value: unknown, source: ReplySource, api: WireApi): ModelReply {
  const answer: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  const { headers, place } = source;
  const error = findError(answer);
  if (error !== undefined && !api.isAnswer(answer)) return replyToError({ headers, error }, place);
  try {
    return api.read(answer, source);
  } catch (thrown) {
    if (!isModelError(thrown)) throw thrown;
    if (error !== undefined) return replyToError({ headers, error }, place);
    if (thrown.details.kind !== 'empty' || source.mayBeEmpty !== true) throw thrown;
    const usage = api.readUsage(answer);
    const requestId = getRequestId(headers);
    const optional = { ...(usage && { usage }), ...(requestId !== undefined && { requestId }) };
    return { text: '', calls: [], finish: 'stop', ...optional };
  }
}

/** The longest time in milliseconds that reading a stream occupies the event loop. */
const TURN_MS = 20;

interface Assembled {
  readonly answer: unknown;
  /** Whether its parts have been emitted. */
  readonly isShown: boolean;
}

/**
 * Assembles the events of a stream into an answer. It is complete with a finish reason or, for a
 * server that sends none, with content and a mark at the end. A single event may hold all of it.
 */
async function assemble(
  events: AsyncIterable<unknown>,
  source: ReplySource,
  { api, watch, emit }: Omit<Reading, 'client'>,
): Promise<Assembled> {
  const assembly = api.assemble(emit, source);
  let whole: unknown;
  let hasEnd = false;
  try {
    let turnBegan = performance.now();
    for await (const event of events) {
      hasEnd = event === DONE || api.isEnd(event);
      if (event !== DONE && api.isWhole(event)) whole = event;
      else if (event !== DONE) assembly.add(event);
      watch.setThinking(assembly.isThinking());
      if (performance.now() - turnBegan < TURN_MS) continue;
      // Buffered events arrive without a pause, but other runs and their heartbeats need one.
      await nextTurn();
      turnBegan = performance.now();
    }
  } catch (error) {
    if (error instanceof ReplyTooLargeError) throw error;
    // A failure after the finish reason does not invalidate a paid answer.
    if (!assembly.isFinished() && whole === undefined) {
      if (!(error instanceof SyntaxError)) throw error;
      const what = 'sent a broken stream';
      throw unusableAnswer(source, { type: 'bad_sse', what, text: error.message });
    }
  }
  if (assembly.isFinished() || (assembly.hasContent() && hasEnd && whole === undefined)) {
    return { answer: assembly.answer(), isShown: true };
  }
  if (whole !== undefined) return { answer: whole, isShown: assembly.hasContent() };
  throw unusableAnswer(source, CUT);
}

function meter(response: Response, onBytes: (total: number) => void): ReadableStream<Uint8Array> {
  let total = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength;
      onBytes(total);
      controller.enqueue(chunk);
    },
  });
  return (response.body ?? new Response('').body ?? new ReadableStream()).pipeThrough(counter);
}

/** Bytes that tell a stream from a whole answer. */
const HEAD_BYTES = 8;

/** Blanks and line breaks, and the bytes of a byte order mark. */
const SKIPPED: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);

/** Reads the beginning of a body, and returns it with the whole body, without leading blanks. */
async function openBody(
  stream: ReadableStream<Uint8Array>,
): Promise<{ readonly head: string; readonly body: Response }> {
  const reader = stream.getReader();
  let head = Buffer.alloc(0);
  let isOver = false;
  while (head.length < HEAD_BYTES && !isOver) {
    const { done, value } = await reader.read();
    isOver = done;
    if (value === undefined) continue;
    const start = head.length > 0 ? 0 : value.findIndex((byte) => !SKIPPED.has(byte));
    if (start >= 0) head = Buffer.concat([head, value.subarray(start)]);
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (head.length > 0) controller.enqueue(new Uint8Array(head));
      if (isOver) controller.close();
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { head: head.subarray(0, HEAD_BYTES).toString('latin1'), body: new Response(body) };
}
