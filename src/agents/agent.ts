import type { z } from 'zod';
import type {
  AgentTexts,
  Compaction,
  LimitOptions,
  Limits,
  ModelSettings,
  OnInvalid,
  OnLimit,
  ToolCalls,
  ToolChoice,
} from '../core/definition/definition.js';
import type { Typed, TypedArgs, TypedPrompts } from '../core/definition/agent-types.js';
import type { GraphDefinition } from '../core/definition/graph-definition.js';
import type { Rule } from '../core/definition/rules.js';
import type { ParentClose } from '../core/definition/tool-definition.js';
import type { Json, JsonObject } from '../core/text/json.js';
import type { Duration } from '../core/text/text.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { ModelReply, ModelRequest, ModelTool } from '../models/model.js';
import type { Template } from '../prompts/template.js';
import type { NodeContext, Tool, ToolRegistry } from '../tools/tool.js';
import type {
  AgentOutput,
  AnswerContract,
  RememberFunction,
  RememberOptions,
  Rememberer,
  RetrieveFunction,
  RetrieveOptions,
  Retriever,
} from './agent-parts.js';
import type { NamedPrompt, PromptTable, PromptTypes } from './prompts.js';

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
 * import { defineAgent } from 'perdure';
 * import type { DecideFunction } from 'perdure/models';
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

/** What makes an agent a graph: the data that a run pins, and the code that stays on the worker. */
export interface GraphParts {
  readonly definition: GraphDefinition;
  /** The type of the `input` that starts a turn: the fields that JSON can express. */
  readonly input: z.ZodObject;
  /** The functions of `run`, `route`, and `each` nodes, by node. */
  readonly functions: ReadonlyMap<string, NodeFunction>;
  /**
   * Returns why the functions cannot take the state of a run that has pinned another form of the
   * graph, or null. `pinned`: the fields of that form.
   */
  readonly stateMisfit?: (state: JsonObject, pinned: readonly string[]) => Promise<string | null>;
  /** The contracts that parse the replies of `decide` nodes with an `output`, by node. */
  readonly outputs: ReadonlyMap<string, AnswerContract>;
}

/**
 * What the worker calls at a node. It receives the state as recorded, and, in an `each`, the item.
 * It returns what the run records.
 */
export type NodeFunction = (
  given: { readonly state: JsonObject; readonly item?: Json },
  context: NodeContext,
) => Promise<NodeResult>;

/**
 * What a node's function returned, checked: an exit of a `route`, a patch, or the value of an
 * `each`.
 */
export interface NodeResult {
  /** Of a `route`. */
  readonly exit?: string;
  /** The fields of the state that change. */
  readonly patch?: JsonObject;
  /** Of one item of an `each`. */
  readonly value?: Json;
}

/** What an author passes to `defineAgent`. */
export interface AgentOptions<
  Output = Json,
  Prompts extends PromptTable = PromptTable,
  Args extends z.ZodObject = z.ZodObject,
> {
  // The agent, and the model that decides

  /** Letters, digits, `_`, `-` and `.`, at most 64 characters; unique on a worker. */
  readonly name: string;
  /**
   * For other agents that call this one: what it does and when to call it. Default: none; an agent
   * that calls it then has to describe it.
   */
  readonly description?: string;
  /** The system message; for a template, each run passes the arguments. */
  readonly instructions: string | Template<Args>;
  /**
   * An entry of `models` in the config, or a model name for the OpenAI adapter; default:
   * PERDURE_MODEL. In a list of up to 8, each is called while the provider of the one before is down,
   * is overloaded, or has a spent quota; a refused key or a refused request never falls through.
   */
  readonly model?: string | readonly [string, ...string[]];
  /**
   * Sampling and other parameters; most reach the provider unchanged. Default: those of the
   * provider.
   */
  readonly settings?: ModelSettings;
  /**
   * The names of the settings that a message may give for its turn (`send({ settings })`); an empty
   * list: none. Default: those that change how the model writes, such as `temperature`,
   * `reasoning_effort`, `seed`, and `maxOutputTokens` up to the agent's own, and those by which the
   * provider files a request, such as `metadata` and `user`.
   */
  readonly callSettings?: readonly string[];
  /**
   * How the next step is decided: by native tool calls (default), by JSON under a schema (for
   * models and servers without tool calls), or by your function in place of a model.
   */
  readonly decide?: 'tools' | 'schema' | DecideFunction;

  // What the agent may do

  /** What the model may call; default: nothing. */
  readonly tools?: readonly Tool[];
  /** MCP servers, made by `mcpServer`, that provide tools to the agent. Default: none. */
  readonly mcp?: readonly McpServer[];
  /** Agents that this one may call like tools; each call is a run of its own. Default: none. */
  readonly agents?: readonly (Agent | CalledAgent)[];
  /**
   * Names of further agents whose runs this agent may fork; it may always fork its own. Its model
   * then reads their messages, so name only agents whose runs every user of this agent may read.
   * Default: none.
   */
  readonly forkFrom?: readonly string[];
  /** Whether the model may, must, or must not call tools; default `auto`. */
  readonly toolChoice?: ToolChoice;
  /** What to do with several calls in one message; default `parallel`, at most 5 at once. */
  readonly toolCalls?: ToolCalls;
  /**
   * What the model sees of the tools: all schemas (default), or three tools that find the others,
   * show their schemas, and call them. The catalog pays off from about ten tools.
   */
  readonly toolExposure?: 'all' | 'catalog';
  /** What text without a call means if the agent has tools: the answer (default), or a failure. */
  readonly onPlainText?: 'respond' | 'fail';
  /**
   * Rules for this agent's calls: a call that a rule asks about waits for a person. They can only
   * tighten the worker's rules. Default: none.
   */
  readonly rules?: readonly Rule[];

  // When a turn ends

  /** Limits per turn, and in `run` for the whole run; default 50 steps and 200 calls per turn. */
  readonly limits?: LimitOptions;
  /**
   * How a turn ends at a limit; default `answer`. With `ask`, the run waits until a person raises
   * the limit or ends the turn.
   */
  readonly onLimit?: OnLimit;

  // The form of answers

  /**
   * The required form of an answer; an invalid answer is returned to the model with the reason.
   * Default: any text.
   */
  readonly output?: AgentOutput<Output>;
  /** The maximum number of answers in a turn until one fits `output`; default 10. */
  readonly attempts?: number;
  /**
   * How a turn ends if no answer fits: as `failed` without output (default), or with the last
   * object that could be parsed, with `issues`.
   */
  readonly onInvalid?: OnInvalid;

  // Retrieval and memory

  /**
   * Finds documents for each turn; the model reads them as messages after the user's. The worker
   * runs it: `({ query, messages, limit }, { context, signal, run, log }) => [text, …]`. Default:
   * no documents.
   */
  readonly retrieve?: RetrieveFunction | RetrieveOptions;
  /**
   * Remembers each turn that has ended. The worker runs it, once per turn, before the next turn
   * begins or the run ends: `({ turn, messages, outcome }, { idempotencyKey, context, signal, run,
   * log }) => …`. After three failed attempts, the conversation continues without it, and the
   * status reports that.
   */
  readonly remember?: RememberFunction | RememberOptions;
  /**
   * When a long conversation is summarized and how much of it stays, as shares of the model's
   * window; default 0.75 and 0.25. `false` disables it.
   */
  readonly compaction?: Partial<Compaction> | false;
  /**
   * How long ended runs of the agent stay, counted from their end; at least an hour. A worker that
   * serves the agent looks every hour, and erases older ones of its task queue with the runs that they
   * have called, but no id that several runs have used. It applies to all runs, because no run pins it. A duration: ms, or words such as '90 days'. Default:
   * until someone erases them, or the server's own retention ends.
   */
  readonly retention?: Duration;

  // Texts

  /**
   * Named prompts: a message that names one uses its text, and the turn uses its output, tools, and
   * settings. One conversation can ask for a plan under one schema, then for a report under
   * another. Default: none.
   */
  readonly prompts?: Prompts & PromptTable;
  /**
   * Replacements for the texts that perdure sends to the model: for repairs, the last answer, and
   * required calls. Default: perdure's own.
   */
  readonly texts?: AgentTexts;
}

/** An agent as a tool of another one, with the options of that tool. */
export interface CalledAgent {
  readonly agent: Agent;
  /** The tool's name; default: the agent's, with `_` for dots. */
  readonly as?: string;
  /** Default: the agent's own description. */
  readonly description?: string;
  /** What happens to the called run if its caller ends first; default `request_cancel`. */
  readonly parentClose?: ParentClose;
  /**
   * A named prompt of the agent that replaces the message; the tool accepts its arguments. Default:
   * none.
   */
  readonly prompt?: string;
}

/** An agent made by `defineAgent`: checked, with defaults filled in. */
export interface Agent<Output = unknown, Prompts = unknown, Args = unknown>
  extends Typed<Output>, TypedPrompts<PromptTypes<Prompts, Output>>, TypedArgs<Args> {
  readonly name: string;
  readonly instructions: string;
  /** The template if the instructions are one, else null; `instructions` is then its text. */
  readonly template: Template | null;
  /** Null if any text is an answer. */
  readonly answer: AnswerContract | null;
  /** Null means the default. */
  readonly attempts: number | null;
  readonly onInvalid: OnInvalid;
  readonly decide: 'tools' | 'schema' | DecideFunction;
  readonly onPlainText: 'respond' | 'fail';
  readonly toolExposure: 'all' | 'catalog';
  readonly retrieve: Retriever | null;
  readonly remember: Rememberer | null;
  /** Null means the worker's default model. */
  readonly model: string | null;
  /** The models that are called in turn while the provider of the one before fails. */
  readonly fallbacks: readonly string[];
  readonly tools: ToolRegistry;
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly forkFrom: readonly string[];
  readonly limits: Limits;
  readonly onLimit: OnLimit;
  readonly settings: ModelSettings;
  /** Absent: the default ones. */
  readonly callSettings?: readonly string[];
  /** Null disables compaction; if absent, the default shares apply. */
  readonly compaction?: Compaction | null;
  /** How long ended runs stay, in ms; if absent, nothing is erased. A run does not pin it. */
  readonly retentionMs?: number;
  readonly description: string;
  readonly mcp: readonly McpServer[];
  /** The agents that this one calls; a worker that serves this agent also serves them. */
  readonly agents: readonly Agent[];
  readonly rules: readonly Rule[];
  /** If absent, perdure's own texts apply. */
  readonly texts?: AgentTexts;
  /** The named prompts; absent if there are none. */
  readonly prompts?: ReadonlyMap<string, NamedPrompt>;
  /** Present if the agent is a graph, made by `defineGraph`. */
  readonly graph?: GraphParts;
}
