import type { Json, JsonObject } from '../json.js';

/** What a tool does to the world; decides how often it may be executed. */
export type Effect = 'read' | 'keyed' | 'once';

export type LimitName = 'steps' | 'toolCalls' | 'tokens' | 'costUsd' | 'wallMs' | 'depth';

/** Positive numbers, or null for none. `wallMs` is in milliseconds, `costUsd` in US dollars. */
export type LimitSet = { readonly [K in LimitName]?: number | null };

/** Limits of a turn, and in `run` those of the whole run. */
export interface Limits extends LimitSet {
  readonly run?: LimitSet;
}

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

/** A tool as data: what is pinned at the start of a run. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments, as the model sees it. */
  readonly parameters: JsonObject;
  readonly effect: Effect;
  readonly ends?: true;
  readonly repeat?: 'allow';
  /** The workflow answers the call itself: `wait` by a durable timer, `artifacts` from its state. */
  readonly kind?: 'wait' | 'agent' | 'artifacts';
  /** The agent behind a tool of kind `agent`. */
  readonly calls?: { readonly agent: string; readonly parentClose: ParentClose };
  /** Has a `verify` function, so an unknown outcome can be settled without a person. */
  readonly verify?: true;
  /** Milliseconds one execution may take. */
  readonly timeoutMs: number;
  /** Milliseconds after which a silent worker is taken for dead. */
  readonly heartbeatMs: number;
  /** Executions in all before a throwing tool is reported to the model; 1 for `once`. */
  readonly attempts: number;
  /** Only where the agent shows a catalog, and only of its own tools. */
  readonly catalog?: CatalogEntry;
  /** It is a tool of an MCP server; each call goes there. */
  readonly mcp?: McpOrigin;
}

/** How a tool is listed where its agent shows a catalog in place of all schemas. */
export interface CatalogEntry {
  /** What it does, in at most 200 characters. */
  readonly summary: string;
  readonly category: string;
  /** What it does to what it is about: read, search, list, create, write, delete, …. */
  readonly actions: readonly string[];
}

/** Where a tool of an MCP server comes from. */
export interface McpOrigin {
  /** As the agent names it. */
  readonly server: string;
  /** As the server names it. */
  readonly tool: string;
  /** SHA-256 (hex) of all that the server said of it. */
  readonly hash: string;
}

/** The MCP servers of an agent, as far as they are data. */
export interface McpUsed {
  readonly servers: readonly McpPolicy[];
  /** Hash of the definition before its servers were asked; absent until they are. */
  readonly unlisted?: string;
  /** Servers that could not be had, and that the run does without. */
  readonly left?: readonly McpOmission[];
}

export interface McpPolicy {
  readonly name: string;
  readonly allowTools?: readonly string[];
  readonly denyTools?: readonly string[];
  readonly effects?: Readonly<Record<string, Effect>>;
  readonly startup?: 'best_effort';
}

export interface McpOmission {
  readonly server: string;
  /** For people. */
  readonly message: string;
}

/** What becomes of an agent that was called when its caller ends first. */
export type ParentClose = 'terminate' | 'request_cancel' | 'abandon';

export type OnLimit = 'answer' | 'compose' | 'fail';
export type ToolCalls = 'parallel' | 'sequential' | 'first';
export type ToolChoice = 'auto' | 'required' | 'none';

export interface ModelSettings {
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Tools that the provider executes, in its own form; only with `api: 'responses'`. */
  readonly nativeTools?: readonly JsonObject[];
  readonly [name: string]: Json | undefined;
}

/** What a turn's answer has to be. `json`: a value under this JSON schema. */
export type OutputDefinition =
  | { readonly type: 'json'; readonly name: string; readonly schema: JsonObject }
  | { readonly type: 'tags'; readonly tags: TagSet }
  /** One of the classes, with how probable each is; `samples`: by asking so many times. */
  | { readonly type: 'classes'; readonly classes: readonly string[]; readonly samples?: number }
  | { readonly type: 'function' };

/** Which text was filled in with a run's arguments, and the hash of the definition as it was before that. */
export interface TemplateUsed {
  readonly hash: string;
  readonly unfilled: string;
}

/** How a turn ends when no answer keeps to the contract: without one, or with the last as it is. */
export type OnInvalid = 'fail' | 'best_effort';

/** Marks that an answer is made of: `<name>…</name>`, fenced blocks, and words that are there or not. */
export interface TagSet {
  readonly xml: readonly Tag[];
  readonly fences: readonly Tag[];
  readonly signals: readonly string[];
}

export interface Tag {
  readonly name: string;
  readonly required: boolean;
}

/** Shares of the model's window, between 0 and 1. */
export interface Compaction {
  /** A prompt above this share is summarized. */
  readonly at: number;
  /** This share of the newest messages stays as it is. */
  readonly keep: number;
}

/** An agent as data: pinned by `loadAgent`, named by `hash` ever after. */
export interface AgentDefinition {
  readonly name: string;
  readonly instructions: string;
  readonly model: string;
  /** Sorted by name, so that the prompt prefix is stable. */
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly onLimit: OnLimit;
  readonly limits: Limits;
  readonly settings: ModelSettings;
  /** Absent: the defaults; null: never. */
  readonly compaction?: Compaction | null;
  /** What an answer has to be; absent: any text. */
  readonly output?: OutputDefinition;
  /** Answers in all that a turn may give before it ends as it is; only with `output`. */
  readonly attempts?: number;
  readonly onInvalid?: OnInvalid;
  /** How the model decides; absent: by native tool calls. */
  readonly decide?: 'schema' | 'function';
  /** Three tools to find, read and call the others are shown in their place; absent: all are shown. */
  readonly toolExposure?: 'catalog';
  /** What a text without a call is, where the agent has tools; absent: the answer. */
  readonly onPlainText?: 'fail';
  /** A function of the worker finds documents for each turn; it may take so many milliseconds. */
  readonly retrieve?: { readonly timeoutMs: number };
  /** Agents whose runs a run of this one may begin with, beside its own. */
  readonly forkFrom?: readonly string[];
  /** The MCP servers that tools come from. */
  readonly mcp?: McpUsed;
  /** The template that the instructions were made of. */
  readonly template?: TemplateUsed;
  /** SHA-256 (hex) of all the above in canonical form. */
  readonly hash: string;
}
