import { setImmediate as nextTurn } from 'node:timers/promises';
import { isObject } from '../../core/json.js';
import { emitReply, type EmitDelta } from '../deltas.js';
import type { ModelReply } from '../model.js';
import type { WireApi, ReplySource } from './api.js';
import type { CallWatch } from './call-watch.js';
import type { WireClient } from './client.js';
import { replyToError, unusableAnswer } from './errors.js';
import { assertWithinLimits, parseBounded, ReplyTooLargeError } from './reply-limits.js';

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

/**
 * Reads a successful HTTP response as a reply. One that exceeds a limit causes a `ModelError` of
 * kind `request`: it has been paid for, and a retry would be just as long.
 */
export async function readAnswer(
  response: Response,
  source: ReplySource,
  options: BodyReading,
): Promise<ModelReply> {
  try {
    const reply = await readBody(response, source, options);
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
  const isStream = isEventStream(response.headers, options.streamed);
  if (isStream) watch.progress();
  const body = meter(response, (total) => {
    if (isStream) watch.progress();
    if (total > MAX_ANSWER_BYTES) {
      throw new ReplyTooLargeError(`more than ${MAX_ANSWER_BYTES} bytes`);
    }
  });
  if (isStream) return api.read(await assemble(body, source, options), source);
  const reply = parseReply(await body.response.text(), source, api);
  emitReply(reply, emit);
  return reply;
}

/**
 * Whether a response is a stream, according to its content type: some servers ignore the request
 * for a stream.
 */
function isEventStream(headers: Headers, streamed: boolean): boolean {
  const type = headers.get('content-type') ?? '';
  if (type.includes('event-stream')) return true;
  return streamed && !type.includes('json') && !type.includes('html');
}

/**
 * Reads an unstreamed body. It may be anything: a proxy's HTML, incomplete JSON, or an error with
 * status 200.
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
    throw unusableAnswer(source, { type: 'bad_json', what: 'sent broken JSON', text });
  }
  if (isObject(value) && value['error'] && !api.isAnswer(value)) {
    return replyToError({ headers: source.headers, error: value['error'] }, source.place);
  }
  return api.read(value, source);
}

/** The longest time in milliseconds that reading a stream occupies the event loop. */
const TURN_MS = 20;

/**
 * Assembles the events of a stream into an answer. It is complete with a finish reason or, for a
 * server that sends none, with content and `[DONE]` at the end.
 */
async function assemble(
  { response, endsWithDone }: MeteredBody,
  source: ReplySource,
  { api, client, watch, emit }: Reading,
): Promise<unknown> {
  const assembly = api.assemble(emit, source);
  try {
    let turnBegan = performance.now();
    for await (const event of client.events(response)) {
      assembly.add(event);
      watch.setThinking(assembly.isThinking());
      if (performance.now() - turnBegan < TURN_MS) continue;
      // Buffered events arrive without a pause, but other runs and their heartbeats need one.
      await nextTurn();
      turnBegan = performance.now();
    }
  } catch (error) {
    if (error instanceof ReplyTooLargeError) throw error;
    // A failure after the finish reason does not invalidate a paid answer.
    if (!assembly.isFinished()) {
      if (!(error instanceof SyntaxError)) throw error;
      const what = 'sent a broken stream';
      throw unusableAnswer(source, { type: 'bad_sse', what, text: error.message });
    }
  }
  if (assembly.isFinished() || (assembly.hasContent() && endsWithDone())) return assembly.answer();
  const what = 'ended its stream before the answer was complete';
  throw unusableAnswer(source, { type: 'stream_cut', what, text: '' });
}

/** Characters kept of the end of a stream: enough for the last event and trailing whitespace. */
const TAIL_CHARACTERS = 64;

/** The last event; the model's text cannot imitate it, because JSON has no raw line breaks. */
const DONE = /(?:^|[\r\n])data: ?\[DONE\]\s*$/;

interface MeteredBody {
  readonly response: Response;
  readonly endsWithDone: () => boolean;
}

function meter(response: Response, onBytes: (total: number) => void): MeteredBody {
  let total = 0;
  let tail = '';
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength;
      onBytes(total);
      const end = Buffer.from(chunk.subarray(-TAIL_CHARACTERS)).toString('latin1');
      tail = (tail + end).slice(-TAIL_CHARACTERS);
      controller.enqueue(chunk);
    },
  });
  return {
    response: new Response(response.body?.pipeThrough(counter) ?? null),
    endsWithDone: () => DONE.test(tail),
  };
}
