import type { Duration } from '../text/duration.js';
import type { Json, JsonObject } from '../json.js';
import type { GraphDefinition } from '../graph/definition.js';
import type { Rule } from '../requests/rules.js';
import type { AgentTexts } from '../text/author-texts.js';
import type { Effect, ToolDefinition } from './tool-definition.js';

/** The limits that a turn and a run can have. */
export const LIMIT_NAMES = ['steps', 'toolCalls', 'tokens', 'costUsd', 'wallMs', 'depth'] as const;
/** One of the limits of a turn or a run. `wallMs` counts milliseconds, `costUsd` US dollars, the others numbers. */
export type LimitName = (typeof LIMIT_NAMES)[number];

/** Limits as positive numbers, or null for no limit. `wallMs` is in ms, `costUsd` in US dollars. */
export type LimitSet = { readonly [K in LimitName]?: number | null };

/** The limits of what model calls use. */
export type BudgetName = Extract<LimitName, 'tokens' | 'costUsd'>;

/** The remaining tokens and US dollars. */
export type Budget = { readonly [K in BudgetName]?: number };

/** Limits as people write them: `wall` is the time as a duration, in place of `wallMs`. */
export type LimitSetOptions = LimitSet & { readonly wall?: Duration | null };

/** Limits of each turn, and in `run` those of the whole run, as people write them. */
export type LimitOptions = LimitSetOptions & { readonly run?: LimitSetOptions };

/** Limits of each turn, and in `run` those of the whole run. */
export interface Limits extends LimitSet {
  readonly run?: LimitSet;
}

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly cachedInput: number;
  /** Input that the provider writes to its cache; default: as `input`. */
  readonly cacheWrite?: number;
  readonly output: number;
}

/** The MCP servers of an agent, as data. */
export interface McpUsed {
  readonly servers: readonly McpPolicy[];
  /** Hash of the definition before its servers listed their tools; absent until then. */
  readonly unlisted?: string;
  /** Servers that were not available, so the run works without them. */
  readonly left?: readonly McpOmission[];
}

/** Which tools of an MCP server an agent uses, and with which effects. */
export interface McpPolicy {
  readonly name: string;
  readonly allowTools?: readonly string[];
  readonly denyTools?: readonly string[];
  readonly effects?: Readonly<Record<string, Effect>>;
  readonly startup?: 'best_effort';
}

/** An MCP server that a run works without. */
export interface McpOmission {
  readonly server: string;
  /** For people. */
  readonly message: string;
}

/**
 * What happens at a limit: the turn ends with a closing model call, with a composed answer, or as
 * failed, or the run asks a person to raise the limit.
 */
export type OnLimit = 'answer' | 'compose' | 'fail' | 'ask';
/** Which of several calls in one message are executed: all at once (at most 5), all in order, or only the first. */
export type ToolCalls = 'parallel' | 'sequential' | 'first';
/** Whether the model may (`auto`), must (`required`), or must not (`none`) call tools. */
export type ToolChoice = 'auto' | 'required' | 'none';

/** Settings of the model, which are sent with each request. */
export interface ModelSettings {
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** Tools that the provider executes, in its own form; only with `api: 'responses'`. */
  readonly nativeTools?: readonly JsonObject[];
  readonly [name: string]: Json | undefined;
}

/** The contract for a turn's answer. `json`: a value that fits this JSON schema. */
export type OutputDefinition =
  | { readonly type: 'json'; readonly name: string; readonly schema: JsonObject }
  | { readonly type: 'tags'; readonly tags: TagSet }
  /**
   * One of the classes, with a probability for each. `samples`: the number of model calls for them.
   */
  | { readonly type: 'classes'; readonly classes: readonly string[]; readonly samples?: number }
  | { readonly type: 'function' };

/**
 * A named prompt of an agent: the text of a message, and the settings that its turn uses in place
 * of the agent's.
 */
export interface PromptDefinition {
  /** A template if there are `args`, else the literal text. */
  readonly text: string;
  /** JSON schema of the arguments; absent: it accepts none. */
  readonly args?: JsonObject;
  /** The contract for the turn's answer; null: any text; absent: the agent's output. */
  readonly output?: OutputDefinition | null;
  /** Maximum number of answers in the turn; absent: the agent's. */
  readonly attempts?: number;
  /** Names of the tools that the model may call; empty: none; absent: all. */
  readonly tools?: readonly string[];
  /** Settings that replace the agent's one by one. */
  readonly settings?: ModelSettings;
}

/**
 * The hash of a template, and the hash of the definition before the run's arguments were filled in.
 */
export interface TemplateUsed {
  readonly hash: string;
  readonly unfilled: string;
}

/** How a turn ends if no answer fits its output: as failed, or with the last answer unchanged. */
export type OnInvalid = 'fail' | 'best_effort';

/** The parts of a tagged answer: `<name>…</name>`, fenced blocks, and words that may be present. */
export interface TagSet {
  readonly xml: readonly Tag[];
  readonly fences: readonly Tag[];
  readonly signals: readonly string[];
}

/** A part of a tagged answer by its name, and whether an answer without it is refused. */
export interface Tag {
  readonly name: string;
  readonly required: boolean;
}

/** Shares of the model's window, between 0 and 1. */
export interface Compaction {
  /** A prompt above this share is summarized. */
  readonly at: number;
  /** This share of the window is reserved for the newest messages, which stay unchanged. */
  readonly keep: number;
}

/** An agent as data. `loadAgent` pins it; from then on, the run names it by `hash`. */
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
  /** The names of the settings that a message may give; absent: the default ones. */
  readonly callSettings?: readonly string[];
  /** Absent: the defaults; null: never. */
  readonly compaction?: Compaction | null;
  /** The contract for an answer; absent: any text. */
  readonly output?: OutputDefinition;
  /** Maximum number of answers in a turn; only with `output`. */
  readonly attempts?: number;
  readonly onInvalid?: OnInvalid;
  /** How the model decides; absent: by native tool calls. */
  readonly decide?: 'schema' | 'function';
  /**
   * The model sees three tools that find, describe, and call the others; absent: it sees all tools.
   */
  readonly toolExposure?: 'catalog';
  /**
   * A text without a call fails the turn if the agent has tools; absent: the text is the answer.
   */
  readonly onPlainText?: 'fail';
  /** A function on the worker retrieves documents for each turn, within this timeout in ms. */
  readonly retrieve?: { readonly timeoutMs: number };
  /** A function on the worker stores each ended turn in its memory, within this timeout in ms. */
  readonly remember?: { readonly timeoutMs: number };
  /** Other agents whose messages a forked run of this agent may copy. */
  readonly forkFrom?: readonly string[];
  /** The MCP servers of the agent. */
  readonly mcp?: McpUsed;
  /** The agent's rules for its calls. */
  readonly rules?: readonly Rule[];
  /** The author's versions of perdure's texts for the model; absent: perdure's own. */
  readonly texts?: AgentTexts;
  /** The prompts that a message may name; absent: none. */
  readonly prompts?: Readonly<Record<string, PromptDefinition>>;
  /** The template of the instructions. */
  readonly template?: TemplateUsed;
  /** The graph that decides what the run does; absent for an agent, whose model decides. */
  readonly graph?: GraphDefinition;
  /** SHA-256 (hex) of all fields above as canonical JSON. */
  readonly hash: string;
}
