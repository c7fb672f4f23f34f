import type { FinishReason, ModelReply } from '../models/model.js';
import type { JsonObject } from '../core/text/json.js';
import { assertOptionNames } from '../validation/option-names.js';
import {
  COMPLETION_OPTIONS,
  type CompletionOptions,
  type Delivery,
  type StubToken,
  checkedDelivery,
} from './reply-options.js';

export type {
  CompletionOptions,
  CutHow,
  Delivery,
  SseOptions,
  StubToken,
} from './reply-options.js';

/** What the stub sends for a reply. */
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

/** A tool call in a scripted reply. */
export interface ScriptedCall {
  readonly name: string;
  /** A string is sent verbatim; everything else as JSON text. */
  readonly arguments: JsonObject | string;
  /** Gemini's `thought_signature` in `extra_content`. Chat Completions only. */
  readonly signature?: string;
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/**
 * One reply of a script, for `scriptedModel` and for `startStub` alike. `replyText`, `replyCall`, and
 * the other functions of this family create it.
 */
export interface Reply {
  /** What the stub sends. */
  readonly wire: Step;
}

/** A reply of text or calls. It is also what the method `call` of a `Model` returns. */
export type AnswerReply = Reply & ModelReply;

/**
 * Creates a reply of text, which ends a turn.
 *
 * @example
 * ```ts
 * import { replyText, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([replyText('Hello.'), new Error('the connection was lost')]);
 * ```
 */
export function replyText(text: string, options: CompletionOptions = {}): AnswerReply {
  const wire = createCompletion({ content: text }, { finish: 'stop', ...options });
  return withWire(toModelReply({ text, calls: [], finish: 'stop' }, options), wire);
}

/**
 * Creates a reply that requests calls, in this order.
 *
 * @example
 * ```ts
 * import { replyCalls, scriptedModel } from 'perdure/testing';
 *
 * const add = { name: 'add', arguments: { a: 1, b: 2 } };
 * const today = { name: 'today', arguments: {} };
 *
 * export const model = scriptedModel([replyCalls([add, today])]);
 * ```
 */
export function replyCalls(
  calls: readonly ScriptedCall[],
  options: CompletionOptions & { readonly text?: string } = {},
): AnswerReply {
  const { text = null, ...rest } = options;
  const wire = createCompletion(
    { content: text, tool_calls: calls.map(toWireCall) },
    { finish: 'tool_calls', ...rest },
  );
  const requested = calls.map((call) => ({ name: call.name, arguments: argumentsOf(call) }));
  const reply = { text: text ?? '', calls: requested, finish: 'calls' } as const;
  return withWire(toModelReply(reply, options), wire);
}

/**
 * Creates a reply that requests one call.
 *
 * @example
 * ```ts
 * import { replyCall, replyText, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([
 *   replyCall('add', { a: 17, b: 25 }),
 *   ({ messages }) => replyText(`It is ${messages.at(-1)?.text ?? ''}.`),
 * ]);
 * ```
 */
export function replyCall(
  name: string,
  args: JsonObject = {},
  options: CompletionOptions & { readonly text?: string } = {},
): AnswerReply {
  return replyCalls([{ name, arguments: args }], options);
}

/**
 * Creates a reply that asks for an action on the screen (Responses API); several actions are
 * batched, as the newer tool does. `checks`: the provider's pending safety checks. Only for the stub.
 *
 * @example
 * ```ts
 * import { replyComputer, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * stub.script(replyComputer({ type: 'screenshot' }));
 * ```
 */
export function replyComputer(
  action: JsonObject | readonly JsonObject[],
  options: CompletionOptions & { checks?: readonly JsonObject[]; text?: string } = {},
): Reply {
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
  const content = { content: text };
  return { wire: createCompletion(content, { finish: 'stop', ...rest, items: [...items, call] }) };
}

/**
 * Creates a refusal in the model's words.
 *
 * @example
 * ```ts
 * import { replyRefusal, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([replyRefusal('I cannot help with that.')]);
 * ```
 */
export function replyRefusal(refusal: string, options: CompletionOptions = {}): AnswerReply {
  const wire = createCompletion({ content: null, refusal }, { finish: 'stop', ...options });
  return withWire(toModelReply({ text: refusal, calls: [], finish: 'refused' }, options), wire);
}

/**
 * Creates a completion of any shape. A stream is created from the message of its first choice. Only
 * for the stub.
 *
 * @example
 * ```ts
 * import { replyCompletion, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * stub.script(replyCompletion({ object: 'chat.completion', choices: [] }));
 * ```
 */
export function replyCompletion(completion: JsonObject, delivery: Delivery = {}): Reply {
  return { wire: { type: 'completion', completion, delivery: checkedDelivery(delivery) } };
}

/**
 * Creates an error of the provider, in OpenAI's form. A scripted model rejects with the error that
 * perdure makes of it.
 *
 * @example
 * ```ts
 * import { replyError, replyText, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * stub.script(replyError(429, { message: 'slow down', type: 'rate_limit' }), replyText('Here it is.'));
 * ```
 */
export function replyError(status: number, error: JsonObject, delivery: Delivery = {}): Reply {
  return replyRaw(JSON.stringify({ error }), { ...delivery, status });
}

/**
 * Creates a reply of any bytes; default status 200, with the content type of `headers`, else JSON.
 * Only for the stub.
 *
 * @example
 * ```ts
 * import { replyRaw, startStub } from 'perdure/testing';
 *
 * const stub = await startStub();
 * stub.script(replyRaw('<html>busy</html>', { status: 502, headers: { 'content-type': 'text/html' } }));
 * ```
 */
export function replyRaw(
  body: string,
  options: Delivery & { readonly status?: number } = {},
): Reply {
  const { status = 200, ...delivery } = options;
  return { wire: { type: 'raw', status, body, delivery: checkedDelivery(delivery) } };
}

/**
 * Creates a connection that is reset before a byte is sent. A scripted model rejects.
 *
 * @example
 * ```ts
 * import { replyReset, replyText, scriptedModel } from 'perdure/testing';
 *
 * export const model = scriptedModel([replyReset(), replyText('Hello.')]);
 * ```
 */
export function replyReset(delivery: Pick<Delivery, 'holdBeforeHeaders' | 'delay'> = {}): Reply {
  return { wire: { type: 'reset', delivery: checkedDelivery(delivery) } };
}

/** Returns a reply with another delivery. Only for the stub. */
export function withDelivery(reply: Reply | ModelReply, delivery: Delivery): Reply {
  const wire = wireOf(reply);
  return { wire: wire.type === 'reset' ? wire : { ...wire, delivery: checkedDelivery(delivery) } };
}

/** Returns what the stub sends; a changed copy of a reply is sent as its fields say. */
export function wireOf(reply: Reply | ModelReply): Step {
  if ('wire' in reply) return reply.wire;
  const { text, calls } = reply;
  return calls.length > 0 ? replyCalls(calls, { text }).wire : replyText(text).wire;
}

/** The wire form stays out of copies and comparisons of what the model replied. */
function withWire(reply: ModelReply, wire: Step): AnswerReply {
  const answer = { ...reply, wire };
  Object.defineProperty(answer, 'wire', { enumerable: false });
  return answer;
}

const FINISHES: Readonly<Record<string, FinishReason>> = {
  length: 'length',
  content_filter: 'filtered',
  stop: 'stop',
  tool_calls: 'calls',
};

function toModelReply(reply: ModelReply, { usage = USAGE, finish }: CompletionOptions): ModelReply {
  const known = typeof finish === 'string' ? FINISHES[finish] : undefined;
  return {
    ...reply,
    ...(known && { finish: known }),
    ...(usage !== null && {
      usage: {
        inputTokens: Number(usage['prompt_tokens'] ?? 0),
        outputTokens: Number(usage['completion_tokens'] ?? 0),
        cachedTokens: 0,
      },
    }),
  };
}

/** A string is sent verbatim. */
function argumentsOf({ arguments: given }: ScriptedCall): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}

/** The id of a completion until the stub sends it, with the number of the request. */
export const UNNUMBERED = 'chatcmpl-stub';

function createCompletion(
  message: JsonObject,
  options: CompletionOptions & { readonly finish: string | null },
): Step {
  assertOptionNames<CompletionOptions>(options, COMPLETION_OPTIONS);
  const { usage = USAGE, finish, logprobs, reasoning, items, ...delivery } = options;
  const content = logprobs?.map(toWireToken);
  const completion = {
    id: UNNUMBERED,
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

function toWireCall(call: ScriptedCall, index: number): JsonObject {
  const { name, signature } = call;
  const text = argumentsOf(call);
  // The same ids in every answer, as on some servers: clients must not rely on them.
  const extra = signature !== undefined && {
    extra_content: { google: { thought_signature: signature } },
  };
  return { id: `call_${index}`, type: 'function', function: { name, arguments: text }, ...extra };
}
