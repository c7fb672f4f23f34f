import type { Json, JsonObject } from '../text/json.js';
import type { Duration } from '../text/text.js';
import type { GraphDefinition } from './graph-definition.js';
import type { Rule } from './rules.js';
import type { Effect, ToolDefinition } from './tool-definition.js';

/** A part of a template: literal text, or the name of an argument. */
type TemplatePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'argument'; readonly name: string; readonly at: number };

const NAME = /[ \t]*([A-Za-z_]\w*)[ \t]*\}\}/y;
const SAMPLE = 30;

/**
 * Splits a template at its placeholders, `{{name}}`, with optional blanks inside the braces.
 *
 * `{{{{` stands for two opening braces. Single braces, and closing ones anywhere else, are plain
 * text, so `{"a": {{a}}}` needs no escape. A run of opening braces is read from the left: first
 * every four as `{{`, then a single one as text, then two as the beginning of a placeholder.
 *
 * Throws an `Error` if two braces do not begin a placeholder.
 */
export function parsePlaceholders(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  const braces = /\{{2,}/g;
  let read = 0;
  for (let run = braces.exec(template); run; run = braces.exec(template)) {
    const { index } = run;
    const { length } = run[0];
    const rest = length % 4;
    const literal = '{{'.repeat((length - rest) / 4) + (rest % 2 === 1 ? '{' : '');
    parts.push({ type: 'text', text: template.slice(read, index) + literal });
    read = index + length;
    if (rest < 2) continue;
    NAME.lastIndex = read;
    const found = NAME.exec(template);
    if (found === null) throw new Error(describeFault(template, read - 2));
    parts.push({ type: 'argument', name: found[1] ?? '', at: read - 2 });
    read += found[0].length;
  }
  parts.push({ type: 'text', text: template.slice(read) });
  return parts.filter((part) => part.type === 'argument' || part.text !== '');
}

function describeFault(template: string, at: number): string {
  const sample = JSON.stringify(template.slice(at, at + SAMPLE));
  return (
    `at position ${at}, ${sample} does not begin a placeholder; write {{name}}, ` +
    'or {{{{ for two braces as text'
  );
}

/**
 * The author's versions of the texts that perdure writes to an agent's model. They are pinned with
 * the agent. Placeholders are written as in templates: `{{problem}}`.
 */
export interface AgentTexts {
  /**
   * Asks for a corrected answer; only for agents with `output`. It must contain `{{problem}}`, with
   * at least 12 characters before the first placeholder; `{{attempt}}` and `{{attempts}}` are
   * numbers. Default: perdure's own.
   */
  readonly repair?: string;
  /**
   * Asks for the last answer when a limit is reached; `{{reason}}` is that limit. Default:
   * perdure's own.
   */
  readonly closing?: string;
  /**
   * Demands a call from a model whose server does not accept `toolChoice: 'required'`. Default:
   * perdure's own.
   */
  readonly demandCall?: string;
}

/** The placeholders that each text may have. */
const PLACEHOLDERS: Readonly<Record<keyof AgentTexts, readonly string[]>> = {
  repair: ['problem', 'attempt', 'attempts'],
  closing: ['reason'],
  demandCall: [],
};

/**
 * Minimum characters before the first placeholder, so people's messages rarely begin like a repair
 * request.
 */
const MIN_PREFIX_CHARACTERS = 12;

/** Returns the problem with an author's text, and the fix; null if there is none. */
export function authorTextProblem(name: keyof AgentTexts, text: string): string | null {
  if (text.trim() === '') return 'expected a text, got only blanks; omit it to use the default';
  const known = PLACEHOLDERS[name];
  try {
    const parts = parsePlaceholders(text);
    const used = parts.flatMap((part) => (part.type === 'argument' ? [part.name] : []));
    const unknown = used.find((one) => !known.includes(one));
    if (unknown !== undefined) {
      const possible = known.map((one) => `{{${one}}}`).join(', ');
      return `expected ${known.length === 0 ? 'no placeholder' : `no placeholder but ${possible}`}`;
    }
    if (name !== 'repair') return null;
    if (!used.includes('problem')) {
      return 'expected the placeholder {{problem}}, else the model does not learn what is wrong; add it';
    }
    const [first] = parts;
    return first?.type === 'text' && first.text.trim().length >= MIN_PREFIX_CHARACTERS
      ? null
      : `expected at least ${MIN_PREFIX_CHARACTERS} characters before the first placeholder, by which repairs are recognized`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns a text with its placeholders filled in. Placeholders within values are not expanded. */
export function fillText(text: string, values: Readonly<Record<string, string | number>>): string {
  return parsePlaceholders(text)
    .map((part) => (part.type === 'text' ? part.text : String(values[part.name] ?? '')))
    .join('');
}

/** Returns the beginning of a text, up to its first placeholder. */
export function beginOf(text: string): string {
  const [first] = parsePlaceholders(text);
  return first?.type === 'text' ? first.text : '';
}

/** The limits that a turn and a run can have, with what they count. */
export const LIMITS = {
  steps: 'number',
  toolCalls: 'number',
  tokens: 'number',
  costUsd: 'money',
  wallMs: 'time',
  depth: 'number',
} as const;
/** One of the limits of a turn or a run. `wallMs` counts milliseconds, `costUsd` US dollars, the others numbers. */
export type LimitName = keyof typeof LIMITS;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const LIMIT_NAMES = Object.keys(LIMITS) as readonly LimitName[];

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
  /** Of all turns together; default: none. */
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
  /** Globs over the names that the server gives; absent: all tools. */
  readonly allowTools?: readonly string[];
  /** Globs; they win over `allowTools`. */
  readonly denyTools?: readonly string[];
  /** Effects of tools by their names at the server, as in `McpServerOptions`. */
  readonly effects?: Readonly<Record<string, Effect>>;
  /** The run also works without this server. */
  readonly startup?: 'best_effort';
}

/** An MCP server that a run works without. */
export interface McpOmission {
  readonly server: string;
  /** For people. */
  readonly message: string;
}

/** The name of the model of an agent that calls none, such as a graph of functions. */
export const NO_MODEL = 'none';

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
  /** Default: the provider's. */
  readonly temperature?: number;
  /** The longest reply, in tokens; default: the provider's. */
  readonly maxOutputTokens?: number;
  /**
   * Tools that the provider executes, in its own form; only with `api: 'responses'`. Default: none.
   */
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

/** The tools that the caller of a run has added to those of its agent. */
export interface CallerTools {
  readonly names: readonly string[];
  /** Hash of the definition without them. */
  readonly without: string;
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
  /** The models that are called in turn while the provider of the one before fails; absent: none. */
  readonly fallbacks?: readonly string[];
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
  /** Absent: the caller has added none. */
  readonly callerTools?: CallerTools;
  /** The graph that decides what the run does; absent for an agent, whose model decides. */
  readonly graph?: GraphDefinition;
  /** SHA-256 (hex) of all fields above as canonical JSON. */
  readonly hash: string;
}
