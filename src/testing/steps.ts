import type { JsonObject } from '../core/json.js';

/** How an answer breaks off: a reset connection, a closed one, or an HTTP message that ends in order but too early. */
export type CutHow = 'reset' | 'close' | 'end';

/** How a streamed answer is written; all of it optional, in order is the default. */
export interface SseOptions {
  readonly lineEnd?: '\n' | '\r\n';
  /** A comment line before each event, as proxies send to keep a connection alive. */
  readonly comments?: boolean;
  /** Characters of text or arguments in one event; default: all in one. */
  readonly charactersPerEvent?: number;
  /** Puts this text in the place of the data of the event with this number, from 0. */
  readonly malformed?: { readonly event: number; readonly data: string };
  /** `finish`: leaves out everything from the finish reason on; `done`: only `[DONE]`, where there is one. */
  readonly endBefore?: 'finish' | 'done';
  /** Sends each event twice. In the Responses API the two have the same `sequence_number`. */
  readonly twice?: boolean;
}

/** How an answer travels. Waits come in the order of the fields; each is left out by default. */
export interface Delivery {
  /** Name of a barrier to wait at before anything is sent. */
  readonly holdBeforeHeaders?: string;
  readonly delayMs?: number;
  /** Name of a barrier to wait at when the headers are out. */
  readonly holdAfterHeaders?: string;
  /** Waits at a barrier once so many events of a stream are out. */
  readonly holdAfterEvent?: { readonly event: number; readonly barrier: string };
  /** Sends the body in pieces of so many bytes. */
  readonly drip?: { readonly bytes: number; readonly everyMs: number };
  /** Breaks off when so many bytes of the body are out. */
  readonly cut?: { readonly afterBytes: number; readonly how: CutHow };
  readonly headers?: Readonly<Record<string, string>>;
  readonly sse?: SseOptions;
}

/** A token of the answer; `top`: how probable it and its rivals were, from 0 to 1 each. */
export interface StubToken {
  readonly token: string;
  readonly top: Readonly<Record<string, number>>;
}

export interface CompletionOptions extends Delivery {
  /** Of the wire format; `null` leaves it out. Default: 10 tokens in, 5 out. */
  readonly usage?: JsonObject | null;
  /** Told whether the request asks for it or not; left out by default. */
  readonly logprobs?: readonly StubToken[];
  /** Any text, or `null`; default `stop`, with calls `tool_calls`. In the Responses API the status that it means. */
  readonly finish?: string | null;
  /** What the model thinks: `reasoning_content`; in the Responses API an item, encrypted if asked for. */
  readonly reasoning?: string;
  /** Of the Responses API: further output items, such as searches, after what was thought. */
  readonly items?: readonly JsonObject[];
}

/** One answer of the stub. Made by `reply`. */
export type Step =
  /** Sent whole, or as a stream when the request asks for one. */
  | {
      readonly type: 'completion';
      /** Of Chat Completions, or a whole response; a request to the other API is answered in its form. */
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

export interface StubCall {
  readonly name: string;
  /** A string goes out as it is; everything else as JSON text. */
  readonly arguments: JsonObject | string;
  /** Gemini's `thought_signature` in `extra_content`. Chat Completions only. */
  readonly signature?: string;
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

function completionOf(
  message: JsonObject,
  options: CompletionOptions & { readonly finish: string | null },
): Step {
  const { usage = USAGE, finish, logprobs, reasoning, items, ...delivery } = options;
  const content = logprobs?.map(wireToken);
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

/** What has no probability at all goes out as null: JSON knows no minus infinity. */
function wireLogprob(probability: number | undefined): number | null {
  return probability === undefined || probability <= 0 ? null : Math.log(probability);
}

function wireToken({ token, top }: StubToken): JsonObject {
  const rivals = Object.entries(top).map(([text, probability]) => ({
    token: text,
    logprob: wireLogprob(probability),
  }));
  return { token, logprob: wireLogprob(top[token]), top_logprobs: rivals };
}

function wireCall(call: StubCall, index: number): JsonObject {
  const { name, signature } = call;
  const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);
  // The same ids in every answer, as some servers send them: nobody may rely on them.
  const extra = signature !== undefined && {
    extra_content: { google: { thought_signature: signature } },
  };
  return { id: `call_${index}`, type: 'function', function: { name, arguments: text }, ...extra };
}

/**
 * The answers that a stub can give.
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
    return completionOf({ content }, { finish: 'stop', ...options });
  },

  calls(calls: readonly StubCall[], options: CompletionOptions & { text?: string } = {}): Step {
    const { text = null, ...rest } = options;
    return completionOf(
      { content: text, tool_calls: calls.map(wireCall) },
      { finish: 'tool_calls', ...rest },
    );
  },

  /**
   * An action on the screen, of the Responses API; several are batched, as the newer tool does. `checks`:
   * what the provider wants a person to look at.
   */
  computer(
    action: JsonObject | readonly JsonObject[],
    options: CompletionOptions & { checks?: readonly JsonObject[]; text?: string } = {},
  ): Step {
    const { checks = [], text = null, items = [], ...rest } = options;
    const call = {
      id: 'cu_stub',
      type: 'computer_call',
      // The same id in every answer: nobody may rely on it.
      call_id: 'call_screen',
      ...(Array.isArray(action) ? { actions: action } : { action }),
      pending_safety_checks: checks,
      status: 'completed',
    };
    return completionOf({ content: text }, { finish: 'stop', ...rest, items: [...items, call] });
  },

  /** A refusal of the model, in its own words. */
  refusal(refusal: string, options: CompletionOptions = {}): Step {
    return completionOf({ content: null, refusal }, { finish: 'stop', ...options });
  },

  /** A completion of any shape. A stream is made of its first choice's message. */
  completion(completion: JsonObject, delivery: Delivery = {}): Step {
    return { type: 'completion', completion, delivery };
  },

  /** An error in OpenAI's form. */
  error(status: number, error: JsonObject, delivery: Delivery = {}): Step {
    return { type: 'raw', status, body: JSON.stringify({ error }), delivery };
  },

  /** Anything: default status 200, content type as in `delivery.headers`, else JSON. */
  raw(body: string, options: Delivery & { readonly status?: number } = {}): Step {
    const { status = 200, ...delivery } = options;
    return { type: 'raw', status, body, delivery };
  },

  reset(delivery: Pick<Delivery, 'holdBeforeHeaders' | 'delayMs'> = {}): Step {
    return { type: 'reset', delivery };
  },
} as const;
