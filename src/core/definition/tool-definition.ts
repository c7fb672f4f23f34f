import type { JsonObject } from '../text/json.js';

/**
 * A tool's side effects, which decide how often a call may be executed. `keyed` means idempotent.
 */
export type Effect = 'read' | 'keyed' | 'once';

/** A tool as data, in the form that a run pins when it starts. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments, as the model sees it. */
  readonly parameters: JsonObject;
  readonly effect: Effect;
  /** A successful call ends the turn, with the tool's value as its answer. */
  readonly ends?: true;
  /** The tool's result is also recorded as a value, because a graph saves it. */
  readonly value?: true;
  /** A `read` that is quick and may be repeated: the run may execute it in its own workflow task. */
  readonly inline?: true;
  /** Repeated calls within a turn are executed again. */
  readonly repeat?: 'allow';
  /**
   * What executes the call instead of a worker: a durable timer, another agent, the run's state, a
   * person who answers a question, or the client.
   */
  readonly kind?: ToolKind;
  /** The agent behind a tool of kind `agent`. */
  readonly calls?: {
    readonly agent: string;
    readonly parentClose: ParentClose;
    /** The call is this prompt of the agent. */
    readonly prompt?: string;
  };
  /** The tool has a `verify` function, which can decide an unknown outcome without a person. */
  readonly verify?: true;
  /** The tool has an `approval` check; a worker that cannot evaluate it requires approval. */
  readonly approval?: true;
  /**
   * The tool has an `undo` function; a successful call can be undone within this many milliseconds.
   */
  readonly undoMs?: number;
  /** For kind `question` and `client`: milliseconds until the request expires; absent: never. */
  readonly expiresMs?: number;
  /** For kind `client`: JSON schema of the client's result; absent: any value. */
  readonly result?: JsonObject;
  /** For kind `client`: the run's own caller has defined the tool, not the author of the agent. */
  readonly caller?: true;
  /** Maximum duration of one execution in ms. */
  readonly timeoutMs: number;
  /** Heartbeat timeout in ms: how soon the server notices that the worker has died. */
  readonly heartbeatMs: number;
  /** Maximum executions of a failing tool before the model gets the error; 1 for `once`. */
  readonly attempts: number;
  /** Only for the agent's own tools, and only if the agent shows a catalog. */
  readonly catalog?: CatalogEntry;
  /** The MCP server that the tool comes from, and that executes its calls. */
  readonly mcp?: McpOrigin;
}

/** A tool that the caller of a run defines and executes itself. */
export interface ClientTool {
  /** 1 to 64 letters, digits, `_`, and `-`. */
  readonly name: string;
  /** What tells the model what the tool does. Default: none. */
  readonly description?: string;
  /** JSON schema of the arguments, of type `object`; default: no arguments. */
  readonly parameters?: JsonObject;
}

/** See `ToolDefinition.kind`. */
export type ToolKind = 'wait' | 'agent' | 'artifacts' | 'question' | 'client';

/** The entry of a tool in a catalog, which an agent may show in place of all schemas. */
export interface CatalogEntry {
  /** What the tool does, in at most 200 characters. */
  readonly summary: string;
  readonly category: string;
  /** Such as read, search, list, create, write, or delete. */
  readonly actions: readonly string[];
}

/** Where a tool of an MCP server comes from. */
export interface McpOrigin {
  /** The server's name in the agent's definition. */
  readonly server: string;
  /** The tool's name on the server. */
  readonly tool: string;
  /** SHA-256 (hex) of the server's description of the tool. */
  readonly hash: string;
}

/** What happens to a called agent when its caller ends first. */
export type ParentClose = 'terminate' | 'request_cancel' | 'abandon';
