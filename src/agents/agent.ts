import type {
  Compaction,
  Limits,
  OnInvalid,
  OnLimit,
  ParentClose,
  ModelSettings,
  ToolCalls,
  ToolChoice,
} from '../core/definition/definition.js';
import type { Typed } from '../core/definition/output-type.js';
import type { Json } from '../core/json.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { Template } from '../prompts/template.js';
import type { ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import type { AgentOutput, AnswerContract } from './agent-output.js';
import type { DecideFunction } from './decide-function.js';
import type { RetrieveFunction, RetrieveOptions, Retriever } from './retriever.js';

/** What an author writes. */
export interface AgentOptions<Output = Json> {
  /** Letters, digits, `_`, `-` and `.`, at most 64 characters; unique on a worker. */
  readonly name: string;
  /** The system message; as a template, each run gives its arguments. */
  readonly instructions: string | Template;
  /** An entry of `models` in the config, else a name for the OpenAI adapter; absent: PERDURE_MODEL. */
  readonly model?: string;
  readonly tools?: readonly Tool[];
  /** MCP servers whose tools the agent gets, as `mcpServer` made them. */
  readonly mcp?: readonly McpServer[];
  /** Agents that this one may call like tools; each call is a run of its own. */
  readonly agents?: readonly (Agent | CalledAgent)[];
  /**
   * Names of agents whose runs a run of this one may begin with (`fork`), beside its own. Its model then
   * reads what was said in them, so name only agents whose runs may be read by whoever runs this one.
   */
  readonly forkFrom?: readonly string[];
  /** For other agents: what this one does and when to call it. */
  readonly description?: string;
  /** Default `auto`. */
  readonly toolChoice?: ToolChoice;
  /** What to do with several calls in one message; default `parallel`, at most 5 at once. */
  readonly toolCalls?: ToolCalls;
  /** Per turn, and in `run` for the whole run; default 50 steps and 200 calls per turn. */
  readonly limits?: Limits;
  /** How a turn ends at a limit; default `answer`. */
  readonly onLimit?: OnLimit;
  readonly settings?: ModelSettings;
  /** What an answer has to be; what does not keep to it goes back to the model, with the reason. */
  readonly output?: AgentOutput<Output>;
  /** Answers in all that a turn may give until one keeps to `output`; default 10. */
  readonly attempts?: number;
  /** How a turn ends when none did: without output (default), or with the last as it is. */
  readonly onInvalid?: OnInvalid;
  /**
   * How the next step is decided: by native tool calls (default), by JSON under a schema, for models
   * and servers without those, or by a function of yours in place of a model.
   */
  readonly decide?: 'tools' | 'schema' | DecideFunction;
  /** What text without a call is, where the agent has tools: the answer (default), or a failure. */
  readonly onPlainText?: 'respond' | 'fail';
  /**
   * What the model is shown of the tools: all schemas (default), or in place of them three tools with
   * which it finds the others, reads their schemas and calls them. Worth it from about ten tools on.
   */
  readonly toolExposure?: 'all' | 'catalog';
  /**
   * Finds documents for each turn, which the model reads as messages behind what was asked. A function of
   * the worker: `({ query, messages, limit }, { context, signal, run, log }) => [text, …]`.
   */
  readonly retrieve?: RetrieveFunction | RetrieveOptions;
  /** When a long conversation is summarized; shares of the model's window, default 0.75 and 0.25. */
  readonly compaction?: Partial<Compaction> | false;
}

/** An agent as a tool of another, with what is particular to that. */
export interface CalledAgent {
  readonly agent: Agent;
  /** The tool's name; default: the agent's, with `_` for dots. */
  readonly as?: string;
  /** Default: the agent's own. */
  readonly description?: string;
  /** What becomes of the called run when its caller ends first; default `request_cancel`. */
  readonly parentClose?: ParentClose;
}

/** An agent as `defineAgent` made it: checked, defaults filled in. */
export interface Agent<Output = unknown> extends Typed<Output> {
  readonly name: string;
  readonly instructions: string;
  /** Where the instructions are a template; they are then its text. */
  readonly template: Template | null;
  readonly answer: AnswerContract | null;
  readonly attempts: number | null;
  readonly onInvalid: OnInvalid;
  readonly decide: 'tools' | 'schema' | DecideFunction;
  readonly onPlainText: 'respond' | 'fail';
  readonly toolExposure: 'all' | 'catalog';
  readonly retrieve: Retriever | null;
  readonly model: string | null;
  readonly tools: ToolRegistry;
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly forkFrom: readonly string[];
  readonly limits: Limits;
  readonly onLimit: OnLimit;
  readonly settings: ModelSettings;
  /** Null: never; absent: the defaults. */
  readonly compaction?: Compaction | null;
  readonly description: string;
  readonly mcp: readonly McpServer[];
  /** The agents that it calls; a worker that has the one has the others. */
  readonly agents: readonly Agent[];
}
