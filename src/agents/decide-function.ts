import type { Json, JsonObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { ModelTool } from '../models/model.js';

/** What a decision function receives. */
export interface DecideInput {
  readonly instructions: string;
  /** The conversation so far. */
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  /** Whether a limit is reached, so that only an answer counts. */
  readonly closing: boolean;
  /** The run's `context`. */
  readonly context: Json;
  readonly signal: AbortSignal;
}

/** The calls to make, or the answer. */
export type ModelDecision =
  | { readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[] }
  | { readonly answer: string };

/** Decides in place of a model, on the worker. An error that it throws ends the turn as `failed`. */
export type DecideFunction = (input: DecideInput) => ModelDecision | Promise<ModelDecision>;
