import type { Json, JsonObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { ModelTool } from '../models/model.js';

/** What a decision function is given. */
export interface DecisionInput {
  readonly instructions: string;
  /** The conversation so far. */
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  /** A limit is reached: only an answer counts now. */
  readonly closing: boolean;
  /** The run's `context`. */
  readonly context: Json;
  readonly signal: AbortSignal;
}

/** Calls to make, or the answer. */
export type Decision =
  | { readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[] }
  | { readonly answer: string };

/** Decides in place of a model, on the worker. What it throws ends the turn as `failed`. */
export type DecideFunction = (input: DecisionInput) => Decision | Promise<Decision>;
