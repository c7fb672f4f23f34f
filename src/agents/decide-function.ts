import type { z } from 'zod';
import type { Json, JsonObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { ModelReply, ModelRequest, ModelTool } from '../models/model.js';

/** What a decision function receives. */
export interface DecideInput {
  readonly instructions: string;
  /** The conversation so far. */
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ModelTool[];
  /** Whether a limit is reached. Only an answer is accepted then. */
  readonly closing: boolean;
  /** The run's `context`. */
  readonly context: Json;
  readonly signal: AbortSignal;
  /** The agent's model. */
  readonly model: DecideModel;
  /** Writes to the worker's log; secrets are redacted. */
  readonly log: (message: string, fields?: JsonObject) => void;
  /** The values that the run's tools have stored. */
  readonly artifacts: DecideArtifacts;
}

/**
 * A request from a decision function; omitted fields have the values that the step would use
 * without it.
 */
export type DecideRequest = Partial<
  Pick<
    ModelRequest,
    'instructions' | 'messages' | 'tools' | 'toolChoice' | 'settings' | 'responseFormat'
  >
>;

/** The agent's model, for a decision function. */
export interface DecideModel {
  /** The model's name at its provider. */
  readonly name: string;
  /**
   * Calls the model, at most 32 times per decision. The usage is recorded and counts toward the
   * limits of the turn and the run, however the decision ends. A call that the function does not
   * await is aborted when the function ends, and counts with an estimate of its prompt. If the
   * function is retried, a request that was already answered gets the same reply without another
   * call.
   *
   * Rejects with an `Error` for an invalid request, and after the turn was canceled. Rejects with a
   * `ModelError` if the model fails, or if the token or cost limits of the turn or the run leave no
   * room for the call; concurrent calls may each use the full remainder. An error that the function
   * does not catch is retried, blocks the run, or ends the turn, as for any model call. A limit
   * error ends the turn at the limit. If a person then raises the limit, the decision starts over.
   */
  call(request?: DecideRequest): Promise<Pick<ModelReply, 'text' | 'calls' | 'finish' | 'usage'>>;
}

/** The artifacts of a run, for a decision function. */
export interface DecideArtifacts {
  /** Returns the run's artifacts, oldest first. */
  list(): Promise<readonly ArtifactInfo[]>;
  /**
   * Returns a whole value as parsed JSON, or, with a schema, what the schema parses it to. Rejects
   * with a `ToolError` for an unknown name, and for a value that does not fit the schema.
   */
  readonly get: {
    (name: string): Promise<unknown>;
    <Schema extends z.ZodType>(name: string, schema: Schema): Promise<z.output<Schema>>;
  };
}

/** An artifact without its value. */
export interface ArtifactInfo {
  readonly name: string;
  /** What it is, such as `array of 300`. */
  readonly kind: string;
  /** One line from the author of the tool that made it. */
  readonly summary?: string;
  /** The tool that made it. */
  readonly tool: string;
}

/** The calls to make, or the answer. Arguments may be text from a model's reply. */
export type ModelDecision =
  | {
      readonly calls: readonly { readonly name: string; readonly arguments: JsonObject | string }[];
    }
  | { readonly answer: string };

/**
 * Decides in place of a model, on the worker. An error that it throws ends the turn as `failed`.
 *
 * @example
 * ```ts
 * import { defineAgent, type DecideFunction } from 'perdure';
 *
 * const careful: DecideFunction = async ({ model, messages, log }) => {
 *   const draft = await model.call();
 *   if (draft.calls.length > 0) return { calls: draft.calls };
 *   const check = await model.call({
 *     instructions: 'Answer only "yes" or "no": is the last answer polite?',
 *     messages: [...messages, { role: 'assistant', text: draft.text }, { role: 'user', text: 'Is it?' }],
 *     tools: [],
 *   });
 *   log('checked', { verdict: check.text });
 *   return { answer: check.text.startsWith('yes') ? draft.text : 'I would rather not say.' };
 * };
 *
 * export const desk = defineAgent({ name: 'desk', instructions: 'Help.', decide: careful });
 * ```
 */
export type DecideFunction = (input: DecideInput) => ModelDecision | Promise<ModelDecision>;
