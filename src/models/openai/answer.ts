import { setImmediate as nextTurn } from 'node:timers/promises';
import { isObject } from '../../core/json.js';
import type { CallWatch } from '../call-watch.js';
import type { ModelReply } from '../model.js';
import {
  isContentFilter,
  providerError,
  requestIdOf,
  type CallPlace,
  type ProviderError,
  detailsFrom,
} from './errors.js';
import type { OpenAiApi } from './api.js';
import type { OpenAiClient } from './client.js';
import { tellWhole, type Tell } from '../deltas.js';
import { assertWithinLimits, parseBounded, ReplyTooLargeError } from '../reply-limits.js';
import { unusable, type ReplySource } from './chat/reply.js';
import { ModelError } from '../model-error.js';

/** No honest completion comes near it; more would only fill the worker's memory. */
const LARGEST_ANSWER_BYTES = 32 * 1024 * 1024;

/** The reply where the provider's filter refused the prompt; every other error is thrown as `ModelError`. */
export function replyToError(failure: ProviderError, place: CallPlace): ModelReply {
  if (!isContentFilter(failure)) {
    throw redirectError(failure, place) ?? providerError(failure, place);
  }
  const requestId = requestIdOf(failure.headers);
  return {
    text: '',
    calls: [],
    finish: 'filtered',
    ...(requestId !== undefined && { requestId }),
  };
}

/** A whole body as a reply. The text may be anything: HTML of a proxy, half a JSON, an error with status 200. */
export function parseAnswer(text: string, source: ReplySource, api: OpenAiApi): ModelReply {
  if (text.trimStart().startsWith('<')) {
    throw unusable(source, { type: 'html', what: 'sent a page, not an answer', text });
  }
  let value: unknown;
  try {
    value = parseBounded(text);
  } catch (error) {
    if (error instanceof ReplyTooLargeError) throw error;
    throw unusable(source, { type: 'bad_json', what: 'sent broken JSON', text });
  }
  if (isObject(value) && value['error'] && !api.isAnswer(value)) {
    return replyToError({ headers: source.headers, error: value['error'] }, source.place);
  }
  return api.read(value, source);
}

interface Reading {
  readonly api: OpenAiApi;
  readonly watch: CallWatch;
  readonly tell: Tell;
  readonly client: Pick<OpenAiClient, 'events'>;
}

/**
 * The events of a stream as an answer. Whole is what has a reason to end; of a server that gives none,
 * what has something to say and `[DONE]` behind it.
 */
async function gather(
  { response, saidDone }: Metered,
  source: ReplySource,
  { api, client, watch, tell }: Reading,
): Promise<unknown> {
  const assembly = api.assemble(tell, source);
  try {
    let turnBegan = performance.now();
    for await (const event of client.events(response)) {
      assembly.add(event);
      watch.mind({ thinking: assembly.isThinking() });
      if (performance.now() - turnBegan < TURN_MS) continue;
      // Events that are there already come without a pause: other runs and their heartbeats need one.
      await nextTurn();
      turnBegan = performance.now();
    }
  } catch (error) {
    // What breaks after the provider's last word takes nothing from a paid answer.
    if (error instanceof ReplyTooLargeError) throw error;
    if (!assembly.isFinished()) {
      if (!(error instanceof SyntaxError)) throw error;
      throw unusable(source, {
        type: 'bad_sse',
        what: 'sent a broken stream',
        text: error.message,
      });
    }
  }
  if (assembly.isFinished() || (assembly.hasContent() && saidDone())) return assembly.answer();
  throw unusable(source, {
    type: 'stream_cut',
    what: 'ended its stream before the answer was whole',
    text: '',
  });
}

/** Milliseconds that reading a stream takes the process for, at most, before others have their turn. */
const TURN_MS = 20;

/** Of the end of a stream; room for the last event's line and white space behind it. */
const TAIL_CHARACTERS = 64;

/** The last event; text of the model has no line of its own within JSON. */
const DONE = /(?:^|[\r\n])data: ?\[DONE\]\s*$/;

interface Metered {
  readonly response: Response;
  readonly saidDone: () => boolean;
}

function metered(response: Response, onBytes: (total: number) => void): Metered {
  let total = 0;
  let tail = '';
  const meter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      total += chunk.byteLength;
      onBytes(total);
      const end = Buffer.from(chunk.subarray(-TAIL_CHARACTERS)).toString('latin1');
      tail = (tail + end).slice(-TAIL_CHARACTERS);
      controller.enqueue(chunk);
    },
  });
  return {
    response: new Response(response.body?.pipeThrough(meter) ?? null),
    saidDone: () => DONE.test(tail),
  };
}

/** By what the server says it sends: some answer in one piece although a stream was asked for. */
function isEventStream(headers: Headers, asked: boolean): boolean {
  const type = headers.get('content-type') ?? '';
  if (type.includes('event-stream')) return true;
  return asked && !type.includes('json') && !type.includes('html');
}

/**
 * A successful HTTP response as a reply. One that is beyond what any model says is a `ModelError` of kind
 * `request`: it has been paid for, and would be just as long when it is asked for again.
 */
export async function readAnswer(
  response: Response,
  source: ReplySource,
  options: Reading & { readonly streamed: boolean },
): Promise<ModelReply> {
  try {
    const reply = await readBody(response, source, options);
    assertWithinLimits(reply);
    return reply;
  } catch (error) {
    if (!(error instanceof ReplyTooLargeError)) throw error;
    const what = `sent a reply with ${error.message}; nothing of it is used. Limit \`maxOutputTokens\``;
    throw unusable(source, { kind: 'request', type: 'answer_too_large', what, text: '' });
  }
}

async function readBody(
  response: Response,
  source: ReplySource,
  options: Reading & { readonly streamed: boolean },
): Promise<ModelReply> {
  const { api, watch, tell } = options;
  const inPieces = isEventStream(response.headers, options.streamed);
  if (inPieces) watch.progress();
  const body = metered(response, (total) => {
    if (inPieces) watch.progress();
    if (total > LARGEST_ANSWER_BYTES) {
      throw new ReplyTooLargeError(`more than ${LARGEST_ANSWER_BYTES} bytes`);
    }
  });
  if (inPieces) return api.read(await gather(body, source, options), source);
  const reply = parseAnswer(await body.response.text(), source, api);
  tellWhole(reply, tell);
  return reply;
}

/**
 * The `ModelError` for an answer that sends the request elsewhere; null for any other one. Redirects are
 * not followed: the key and the conversation are for the provider that was named, and for no other.
 */
function redirectError({ status, headers }: ProviderError, place: CallPlace): ModelError | null {
  if (status === undefined || status < 300 || status > 399) return null;
  const target = originOf(headers.get('location') ?? '', place.baseUrl);
  return new ModelError(
    `${status} from ${place.baseUrl}: expected an answer, got a redirect to ${target}, which is not followed; ` +
      'if that is the provider, set OPENAI_BASE_URL to its address',
    detailsFrom({ kind: 'model', type: 'redirected' }, headers, { status }),
  );
}

/** Without path and query, which may hold a token. */
function originOf(location: string, base: string): string {
  if (!URL.canParse(location, base)) return 'nowhere';
  const { origin, protocol } = new URL(location, base);
  return origin === 'null' ? protocol : origin;
}
