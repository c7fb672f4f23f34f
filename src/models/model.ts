import type {
  BlobRef,
  PromptMessage,
  ProviderItems,
  SafetyCheck,
} from '../core/transcript/messages.js';
import type { ModelSettings, ToolChoice } from '../core/definition/definition.js';
import type { JsonObject } from '../core/json.js';
import type { RequestParameter } from './parameters.js';

/** A tool as a model is told of it. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** The form that the text of a reply shall have. */
export interface ResponseSchema {
  readonly name: string;
  readonly schema: JsonObject;
  /**
   * What tells a model of the schema in words. It is added to the instructions where the schema itself
   * cannot be sent, also within the very call in which the server refuses it.
   */
  readonly instruction?: string;
}

export interface ModelRequest {
  /** The model's name at its provider. */
  readonly model: string;
  readonly instructions: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  readonly toolChoice: ToolChoice;
  readonly settings: ModelSettings;
  readonly responseFormat?: ResponseSchema;
  /** Asks for the logarithmic probabilities of the reply's tokens, with so many alternatives (at most 20). */
  readonly logprobs?: { readonly top: number };
  /** What this model's server has refused before, by `dropped`: left out from the start. */
  readonly without?: readonly RequestParameter[];
  /**
   * Resolves to the text of a blob; needed only where a message has something by reference: an
   * attachment (as base64), or a provider's items (as JSON).
   */
  readonly files?: (blob: BlobRef) => Promise<string>;
}

/** Why the model stopped. `filtered`: the provider's content filter; `length`: the output limit. */
export type FinishReason = 'stop' | 'calls' | 'length' | 'filtered' | 'refused';

/**
 * Tokens as the provider counts them. `cachedTokens` are a part of `inputTokens`, `reasoningTokens`
 * of `outputTokens`: neither is to be added once more.
 */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Absent when the provider did not say. */
  readonly reasoningTokens?: number;
}

/** A token and the natural logarithm of its probability, from 0 downward. */
export interface TokenAlternative {
  readonly token: string;
  readonly logprob: number;
}

/** A token of a reply with what could have stood in its place, itself mostly among them. */
export interface TokenLogprob extends TokenAlternative {
  readonly top: readonly TokenAlternative[];
}

/** A call as a model asked for it. */
export interface ReplyCall {
  readonly name: string;
  readonly arguments: string;
  /** What the provider wants a person to look at first: until one has, it is not executed. */
  readonly safety?: readonly SafetyCheck[];
}

export interface ModelReply {
  readonly text: string;
  /** In the order asked; `arguments` is the text as the provider sent it, which may be no JSON. */
  readonly calls: readonly ReplyCall[];
  readonly finish: FinishReason;
  /** Absent when the provider did not say. */
  readonly usage?: ModelUsage;
  readonly requestId?: string;
  /** Of the first 256 tokens at most. Absent when not asked for, or when the server does not tell them. */
  readonly logprobs?: readonly TokenLogprob[];
  /** What the provider wants back with this reply; the message that it becomes will have it. */
  readonly provider?: Required<Pick<ProviderItems, 'from' | 'items'>>;
  /** What the server refused in this call, so that it was made once more without; none of `without`. */
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

export interface ModelContext {
  /** Aborts the request, e.g. the HTTP connection, at cancellation or a deadline. */
  readonly signal: AbortSignal;
  /**
   * Told the reply while it comes; an adapter that cannot stream tells it in one piece at the end. What
   * it throws is ignored. What was told is void when the call rejects: only the reply counts.
   */
  readonly onDelta?: (delta: ModelDelta) => void;
}

/**
 * A language model.
 *
 * Contract: resolves with a whole reply or rejects with a `ModelError`; never resolves with half a
 * reply; never retries by itself; stops soon after `context.signal` aborts.
 */
export interface Model {
  call(request: ModelRequest, context: ModelContext): Promise<ModelReply>;
}
