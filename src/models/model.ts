import type { PromptMessage } from '../core/messages.js';
import type { Settings, ToolChoice } from '../core/definition.js';
import type { JsonObject } from '../core/json.js';

/** A tool as a model is told of it. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

export interface ModelRequest {
  /** The model's name at its provider. */
  readonly model: string;
  readonly instructions: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  readonly toolChoice: ToolChoice;
  readonly settings: Settings;
}

/** Why the model stopped. `filtered`: the provider's content filter; `length`: the output limit. */
export type Finish = 'stop' | 'calls' | 'length' | 'filtered' | 'refused';

/** Tokens as the provider counts them; `cachedTokens` are a part of `inputTokens`. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

export interface ModelReply {
  readonly text: string;
  /** In the order asked; `arguments` is the text as the provider sent it, which may be no JSON. */
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish: Finish;
  /** Absent when the provider did not say. */
  readonly usage?: ModelUsage;
  readonly requestId?: string;
}

export interface ModelContext {
  /** Aborts the request, e.g. the HTTP connection, at cancellation or a deadline. */
  readonly signal: AbortSignal;
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
