import type { ModelSettings, ToolChoice } from '../core/definition/definition.js';
import { PerdureError } from '../core/errors.js';
import { type JsonObject, canonicalJson, isObject, sha256Hex } from '../core/text/json.js';
import { TOKENS_PER_ATTACHMENT, shorten, estimateTokens } from '../core/text/text.js';
import type {
  BlobRef,
  PromptMessage,
  ProviderItems,
  SafetyCheck,
} from '../core/transcript/messages.js';
import { redactMessage } from '../secrets/redact.js';

/**
 * The parts of a request that a server may refuse and that a call can leave out or replace. The
 * names are those of the API. A value after a colon means that only this value is refused.
 * Histories store these names, so none may change its meaning.
 */
const FIXED = [
  'role:system',
  'role:developer',
  'role_order:any',
  'response_format:strict',
  'response_format:json_schema',
  'response_format:json_object',
  'logprobs',
  'tool_choice:required',
  'tool_choice:none',
  'tool_choice:auto',
  'stream',
  'stream_options',
  'max_completion_tokens',
  'max_tokens',
  'include',
  'store',
  'provider_items',
  // The forms of a message of calls without a text: null, an empty text, no text.
  'content:null',
  'content:empty',
  'content:absent',
  // perdure's own ids of calls, and the property names of tools as their authors wrote them.
  'call_ids:own',
  'property_names:own',
  // Results without the name of their tool.
  'tool_results:unnamed',
  'tools:strict',
  'cache_control',
] as const;

/**
 * One of the fixed names, a setting of the agent under its own name, or one field of the provider's
 * items.
 */
export type RequestParameter =
  | (typeof FIXED)[number]
  | `settings.${string}`
  | `provider_items.${string}`;

/** Reads recorded names as parameters; names unknown to this version are omitted. */
export function toParameters(names: readonly string[]): readonly RequestParameter[] {
  return names.filter(isParameter);
}

function isParameter(name: string): name is RequestParameter {
  const fixed: readonly string[] = FIXED;
  return fixed.includes(name) || name.startsWith('settings.') || name.startsWith('provider_items.');
}

/** Maximum timeout of a model call. */
export const MAX_CALL_MS = 60 * 60_000;

/** A tool as a model sees it. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** The required form of a reply's text. */
export interface ResponseSchema {
  readonly name: string;
  readonly schema: JsonObject;
  /**
   * Describes the schema in words. It is added to the instructions if the schema itself cannot be
   * sent, including in the call in which the server refuses it.
   */
  readonly instruction?: string;
}

/** A request to a model, in perdure's own form; an adapter translates it to the API of its provider. */
export interface ModelRequest {
  /** The model's name at its provider. */
  readonly model: string;
  readonly instructions: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  readonly toolChoice: ToolChoice;
  /** The text added to the instructions if `required` cannot be sent; default: perdure's. */
  readonly demandCall?: string;
  readonly settings: ModelSettings;
  readonly responseFormat?: ResponseSchema;
  /** Asks for the logprobs of the reply's tokens, with `top` alternatives each (at most 20). */
  readonly logprobs?: { readonly top: number };
  /**
   * The parameters that this model's server refused in earlier calls (`dropped`); they are not
   * sent.
   */
  readonly without?: readonly RequestParameter[];
  /**
   * Resolves to the text of a blob. Only needed if a message refers to one: an attachment (base64),
   * or a provider's items (JSON).
   */
  readonly files?: (blob: BlobRef) => Promise<string>;
}

/**
 * Returns the SHA-256 of a request of `context.generate`. It does not depend on the output limit, which a
 * budget may have lowered. Histories store it, so it must not change.
 */
export function generatedDigest(request: ModelRequest): string {
  const { model, instructions, messages, settings, responseFormat } = request;
  const { maxOutputTokens: _, ...own } = settings;
  const asked = { model, instructions, messages, settings: own, responseFormat };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests are sent as JSON
  return sha256Hex(canonicalJson(JSON.parse(JSON.stringify(asked)) as JsonObject));
}

/** Why the model stopped. `filtered`: the provider's content filter; `length`: the output limit. */
export type FinishReason = 'stop' | 'calls' | 'length' | 'filtered' | 'refused';

/**
 * Token counts from the provider. `cachedTokens` and `cacheWriteTokens` are part of `inputTokens`,
 * and `reasoningTokens` part of `outputTokens`.
 */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Written to the provider's cache; absent if the provider does not count them. */
  readonly cacheWriteTokens?: number;
  /** Absent if the provider did not report it. */
  readonly reasoningTokens?: number;
  /** US dollars, as a router reports them; absent for other providers. */
  readonly costUsd?: number;
  /** Some or all counts are estimated from the texts. */
  readonly estimated?: true;
}

/** A token and the natural logarithm of its probability, at most 0. */
export interface TokenAlternative {
  readonly token: string;
  readonly logprob: number;
}

/** A token of a reply with the likely tokens at its place, usually including itself. */
export interface TokenLogprob extends TokenAlternative {
  readonly top: readonly TokenAlternative[];
}

/** A call that a model requests. */
export interface ReplyCall {
  readonly name: string;
  readonly arguments: string;
  /**
   * The provider's safety checks: the call is not executed until a person has acknowledged them.
   */
  readonly safety?: readonly SafetyCheck[];
}

/** A model's whole reply: text, calls, why it ended, and what it used. Only this counts, not its deltas. */
export interface ModelReply {
  readonly text: string;
  /**
   * In the model's order; `arguments` is the text as the provider sent it, which may not be JSON.
   */
  readonly calls: readonly ReplyCall[];
  readonly finish: FinishReason;
  /** Absent if the provider did not report it. */
  readonly usage?: ModelUsage;
  readonly requestId?: string;
  /**
   * For at most the first 256 tokens. Absent if not requested, or if the server does not send them.
   */
  readonly logprobs?: readonly TokenLogprob[];
  /** The items that go back to the provider with this reply; they are stored with the message. */
  readonly provider?: Required<Pick<ProviderItems, 'from' | 'items'>>;
  /** The parameters that the server refused in this call, which was then repeated without them. */
  readonly dropped?: readonly RequestParameter[];
}

/**
 * One part of a reply in progress, as a model emits it. The `text` deltas, joined, are the reply's
 * `text`. The `call` deltas of one `index`, joined, are the `arguments` of the call at that place.
 * Reasoning is only shown to readers.
 */
export type ModelDelta =
  | {
      readonly kind: 'text' | 'reasoning';
      readonly text: string;
      readonly index?: undefined;
      readonly name?: undefined;
    }
  | {
      readonly kind: 'call';
      /** The next part of the call's arguments; may be empty. */
      readonly text: string;
      /** The place of the call in the reply, from 0. */
      readonly index: number;
      /** Only in the first delta of a call. */
      readonly name?: string;
    };

/** What a model call gets beside its request: the signal that ends it, and where deltas go. */
export interface ModelContext {
  /** Aborts the request, e.g. the HTTP connection, at cancellation or a deadline. */
  readonly signal: AbortSignal;
  /**
   * Receives the reply in progress; an adapter that cannot stream emits it whole at the end. Its
   * errors are ignored. If the call rejects, its deltas are void: only the reply counts.
   */
  readonly onDelta?: (delta: ModelDelta) => void;
}

/**
 * A language model.
 *
 * Contract: `call` resolves with a complete reply or rejects with a `ModelError`; it never resolves
 * with a partial reply, never retries by itself, and stops soon after `context.signal` aborts.
 */
export interface Model {
  call(request: ModelRequest, context: ModelContext): Promise<ModelReply>;
}

/** Emits one delta of a reply in progress; never throws. */
export type EmitDelta = (delta: ModelDelta) => void;

export const ignoreDeltas: EmitDelta = () => {};

/**
 * Wraps the listener of a call so that it cannot fail the call: after it throws, or its promise
 * rejects, it gets no more deltas.
 */
export function createEmitter(onDelta: ModelContext['onDelta']): EmitDelta {
  if (onDelta === undefined) return ignoreDeltas;
  let hasFailed = false;
  return (delta) => {
    if (hasFailed) return;
    try {
      const result: unknown = onDelta(delta);
      if (result instanceof Promise) result.catch(() => void (hasFailed = true));
    } catch {
      hasFailed = true;
    }
  };
}

/** Emits a reply that did not arrive as a stream. */
export function emitReply(
  { text, calls }: Pick<ModelReply, 'text' | 'calls'>,
  emit: EmitDelta,
): void {
  if (text !== '') emit({ kind: 'text', text });
  for (const [index, call] of calls.entries()) {
    emit({ kind: 'call', index, name: call.name, text: call.arguments });
  }
}

const SAMPLE_CHARACTERS = 300;

/**
 * Returns a provider's text as one printable line of at most 300 characters, for a message. It is
 * redacted before it is cut, so no part of a key remains.
 */
export function sample(text: string): string {
  const line = redactMessage(text)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return shorten(line, SAMPLE_CHARACTERS);
}

/**
 * Estimates the usage of a call whose provider reported none, on the high side. No token counts as
 * cached, because cached tokens are cheaper.
 */
export function estimateUsage(request: ModelRequest, reply: ModelReply): ModelUsage {
  const messages = request.messages.map((message) => {
    const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
    const attached = message.role === 'user' ? (message.attachments ?? []).length : 0;
    return attached * TOKENS_PER_ATTACHMENT + estimateTokens(message.text) + estimateCalls(calls);
  });
  const tools = request.tools.map((tool) =>
    estimateTokens(tool.name + tool.description + JSON.stringify(tool.parameters)),
  );
  const { responseFormat } = request;
  const format = responseFormat === undefined ? 0 : estimateTokens(JSON.stringify(responseFormat));
  return {
    inputTokens: estimateTokens(request.instructions) + sum(messages) + sum(tools) + format,
    outputTokens: estimateTokens(reply.text) + estimateCalls(reply.calls),
    cachedTokens: 0,
  };
}

function estimateCalls(
  calls: readonly { readonly name: string; readonly arguments: string }[],
): number {
  return sum(calls.map((call) => estimateTokens(call.name + call.arguments)));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * The failure of a model call, by what fixes it:
 * - `retry`: passes by itself (rate limit, 5xx, connection reset, timeout, unusable reply)
 * - `empty`: a well-formed reply without text or calls; a few more attempts, then the turn ends
 * - `malformed`: the server could not read what its model wrote, or the answer has no message, or a
 *   call without a name; a few more attempts, then the turn ends
 * - `quota` · `credentials` · `model`: an operator must fix it; the run is blocked until then
 * - `bad_request`: the provider refused the request for another reason; the run is blocked until a
 *   probe is accepted
 * - `context_too_long` · `request`: no retry can help; the turn ends
 */
export type ModelErrorKind = (typeof KINDS)[number];

const KINDS = [
  'retry',
  'empty',
  'malformed',
  'quota',
  'credentials',
  'model',
  'bad_request',
  'context_too_long',
  'request',
] as const;

/** The type of a failure of kind `malformed` that the server itself reports. */
export const MALFORMED = 'malformed_reply';

/** What a failed model call is known by: who can fix it, and what the provider said. Times are in ms. */
export interface ModelErrorDetails {
  readonly kind: ModelErrorKind;
  /**
   * A short machine name for reports, e.g. `rate_limit`, `http_502`, `connection_reset`,
   * `bad_json`.
   */
  readonly type: string;
  readonly status?: number;
  /** Milliseconds that the provider asks to wait. */
  readonly retryAfterMs?: number;
  readonly requestId?: string;
}

/** Options of a `ModelError`: its details, and what caused it. */
export type ModelErrorOptions = ModelErrorDetails & ErrorOptions;

/**
 * The only error that a `Model` rejects with. The message contains no key and no request body.
 *
 * @example
 * ```ts
 * import { ModelError, type Model } from 'perdure/models';
 *
 * export const offline: Model = {
 *   call: async () => {
 *     throw new ModelError('the model is not loaded', { kind: 'model', type: 'not_loaded' });
 *   },
 * };
 * ```
 */
export class ModelError extends PerdureError {
  static readonly code = 'model';
  override readonly name = 'ModelError';
  override readonly code = ModelError.code;
  readonly details: ModelErrorDetails;

  constructor(message: string, { cause, ...details }: ModelErrorOptions) {
    super(message, cause === undefined ? {} : { cause });
    this.details = details;
  }
}

/**
 * Whether a value is a `ModelError`, possibly from another copy of this package: an adapter may
 * have its own.
 */
export function isModelError(thrown: unknown): thrown is ModelError {
  if (thrown instanceof ModelError) return true;
  if (!(thrown instanceof Error) || thrown.name !== 'ModelError' || !('details' in thrown))
    return false;
  const { details } = thrown;
  if (!isObject(details) || typeof details['type'] !== 'string') return false;
  const kinds: readonly unknown[] = KINDS;
  return kinds.includes(details['kind']);
}
