import type {
  BlobRef,
  PromptMessage,
  ProviderItems,
  SafetyCheck,
} from '../core/transcript/messages.js';
import type { ModelSettings, ToolChoice } from '../core/definition/definition.js';
import type { JsonObject } from '../core/json.js';
import type { RequestParameter } from './parameters.js';

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
