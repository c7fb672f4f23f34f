import type { JsonObject } from '../core/json.js';
import type { Duration } from '../core/text/duration.js';

/**
 * How an answer is cut: by a reset, by closing the connection, or by ending the HTTP message too
 * early.
 */
export type CutHow = 'reset' | 'close' | 'end';

/** How a streamed answer is written; by default complete and in order. */
export interface SseOptions {
  readonly lineEnd?: '\n' | '\r\n';
  /** Adds a comment line before each event, as proxies do to keep a connection alive. */
  readonly comments?: boolean;
  /** Characters of text or arguments in one event; default: all in one. */
  readonly charactersPerEvent?: number;
  /** Replaces the data of the event with this number, from 0. */
  readonly malformed?: { readonly event: number; readonly data: string };
  /** `finish`: omits everything from the finish reason onward; `done`: omits only `[DONE]`. */
  readonly endBefore?: 'finish' | 'done';
  /** Sends each event twice. In the Responses API the two have the same `sequence_number`. */
  readonly twice?: boolean;
}

/**
 * How an answer is delivered. Waits happen in the order of the fields; by default there are none.
 */
export interface Delivery {
  /** The name of a barrier to wait at before anything is sent. */
  readonly holdBeforeHeaders?: string;
  /** A duration: ms, or words such as '2 seconds'. */
  readonly delay?: Duration;
  /** The name of a barrier to wait at once the headers are sent. */
  readonly holdAfterHeaders?: string;
  /** Waits at a barrier after this many events of a stream. */
  readonly holdAfterEvent?: { readonly event: number; readonly barrier: string };
  /** Sends the body in parts of this many bytes; `every` is a duration. */
  readonly drip?: { readonly bytes: number; readonly every: Duration };
  /** Cuts the answer after this many bytes of the body. */
  readonly cut?: { readonly afterBytes: number; readonly how: CutHow };
  readonly headers?: Readonly<Record<string, string>>;
  readonly sse?: SseOptions;
}

/** A token of the answer; `top`: the probabilities of it and its alternatives, from 0 to 1 each. */
export interface StubToken {
  readonly token: string;
  readonly top: Readonly<Record<string, number>>;
}

/** What a reply of the stub has beside its text or calls, and how it is delivered. */
export interface CompletionOptions extends Delivery {
  /** The usage in the wire format; `null` omits it. Default: 10 tokens in, 5 out. */
  readonly usage?: JsonObject | null;
  /** Sent whether the request asks for them or not; absent by default. */
  readonly logprobs?: readonly StubToken[];
  /**
   * The finish reason: any text, or `null`; default `stop`, with calls `tool_calls`. Responses gets
   * a matching status.
   */
  readonly finish?: string | null;
  /**
   * The reasoning: `reasoning_content`, or an item of the Responses API, encrypted if asked for.
   */
  readonly reasoning?: string;
  /** Responses API only: further output items, such as searches, after the reasoning. */
  readonly items?: readonly JsonObject[];
}

/** One answer of the stub, created by `reply`. */
export type Step =
  /** Sent whole, or as a stream if the request asks for one. */
  | {
      readonly type: 'completion';
      /**
       * A completion or a whole response; a completion is converted for requests to the Responses
       * API.
       */
      readonly completion: JsonObject;
      readonly items?: readonly JsonObject[];
      readonly delivery: Delivery;
    }
  /** Sent verbatim. */
  | {
      readonly type: 'raw';
      readonly status: number;
      readonly body: string;
      readonly delivery: Delivery;
    }
  /** The connection is reset before a byte is sent. */
  | { readonly type: 'reset'; readonly delivery: Delivery };

/** A tool call in a reply of the stub. */
export interface StubCall {
  readonly name: string;
  /** A string is sent verbatim; everything else as JSON text. */
  readonly arguments: JsonObject | string;
  /** Gemini's `thought_signature` in `extra_content`. Chat Completions only. */
  readonly signature?: string;
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/**
 * Creates the answers of a stub.
 *
 * @example
 * ```ts
 * import { reply, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * stub.script(
 *   reply.error(429, { message: 'slow down', type: 'rate_limit' }),
 *   reply.reset(),
 *   reply.text('a reply whose stream is cut', { cut: { afterBytes: 60, how: 'reset' } }),
 *   reply.text('Here it is.'),
 * );
 * ```
 */
export const reply = {
  text(content: string, options: CompletionOptions = {}): Step {
    return createCompletion({ content }, { finish: 'stop', ...options });
  },

  calls(calls: readonly StubCall[], options: CompletionOptions & { text?: string } = {}): Step {
    const { text = null, ...rest } = options;
    return createCompletion(
      { content: text, tool_calls: calls.map(toWireCall) },
      { finish: 'tool_calls', ...rest },
    );
  },

  /**
   * Asks for an action on the screen (Responses API); several actions are batched, as the newer
   * tool does. `checks`: the provider's pending safety checks.
   */
  computer(
    action: JsonObject | readonly JsonObject[],
    options: CompletionOptions & { checks?: readonly JsonObject[]; text?: string } = {},
  ): Step {
    const { checks = [], text = null, items = [], ...rest } = options;
    const call = {
      id: 'cu_stub',
      type: 'computer_call',
      // The same id in every answer: clients must not rely on it.
      call_id: 'call_screen',
      ...(Array.isArray(action) ? { actions: action } : { action }),
      pending_safety_checks: checks,
      status: 'completed',
    };
    return createCompletion(
      { content: text },
      { finish: 'stop', ...rest, items: [...items, call] },
    );
  },

  /** Refuses, in the model's words. */
  refusal(refusal: string, options: CompletionOptions = {}): Step {
    return createCompletion({ content: null, refusal }, { finish: 'stop', ...options });
  },

  /** Sends a completion of any shape. A stream is created from the message of its first choice. */
  completion(completion: JsonObject, delivery: Delivery = {}): Step {
    return { type: 'completion', completion, delivery };
  },

  /** Sends an error in OpenAI's form. */
  error(status: number, error: JsonObject, delivery: Delivery = {}): Step {
    return { type: 'raw', status, body: JSON.stringify({ error }), delivery };
  },

  /** Sends any body; default status 200, with the content type of `headers`, else JSON. */
  raw(body: string, options: Delivery & { readonly status?: number } = {}): Step {
    const { status = 200, ...delivery } = options;
    return { type: 'raw', status, body, delivery };
  },

  reset(delivery: Pick<Delivery, 'holdBeforeHeaders' | 'delay'> = {}): Step {
    return { type: 'reset', delivery };
  },
} as const;

function createCompletion(
  message: JsonObject,
  options: CompletionOptions & { readonly finish: string | null },
): Step {
  const { usage = USAGE, finish, logprobs, reasoning, items, ...delivery } = options;
  const content = logprobs?.map(toWireToken);
  const completion = {
    id: 'chatcmpl-stub',
    object: 'chat.completion',
    created: 0,
    model: 'stub',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          ...message,
          ...(reasoning !== undefined && { reasoning_content: reasoning }),
        },
        finish_reason: finish,
        ...(content && { logprobs: { content } }),
      },
    ],
    ...(usage !== null && { usage }),
  };
  return { type: 'completion', completion, delivery, ...(items && { items }) };
}

/** A probability of 0 becomes null, since JSON has no minus infinity. */
function toWireLogprob(probability: number | undefined): number | null {
  return probability === undefined || probability <= 0 ? null : Math.log(probability);
}

function toWireToken({ token, top }: StubToken): JsonObject {
  const alternatives = Object.entries(top).map(([text, probability]) => ({
    token: text,
    logprob: toWireLogprob(probability),
  }));
  return { token, logprob: toWireLogprob(top[token]), top_logprobs: alternatives };
}

function toWireCall(call: StubCall, index: number): JsonObject {
  const { name, signature } = call;
  const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
  // The same ids in every answer, as on some servers: clients must not rely on them.
  const extra = signature !== undefined && {
    extra_content: { google: { thought_signature: signature } },
  };
  return { id: `call_${index}`, type: 'function', function: { name, arguments: text }, ...extra };
}
