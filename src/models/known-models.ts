import { z } from 'zod';
import type { ModelPrice } from '../core/definition/definition.js';
import { isObject } from '../core/text/json.js';
import { type OptionSchemas } from '../validation/check-options.js';
import { isMistyped } from '../validation/near-names.js';
import type { RequestParameter } from './model.js';

/** The role of the instructions; `user`: they precede the text of the first user message. */
export type SystemRole = 'system' | 'developer' | 'user';

/**
 * Whether several user messages, or several tool results, may follow each other. `alternating`:
 * they may not, as required by the chat templates of open weights.
 */
export type RoleOrder = 'any' | 'alternating';

/** How a server constrains a reply: to a JSON schema, to any JSON object, or not at all. */
export type ResponseFormat = 'json_schema' | 'json_object' | 'none';

/** The capabilities of a model, apart from texts and tools. */
export interface ModelCapabilities {
  readonly systemRole: SystemRole;
  readonly roleOrder: RoleOrder;
  /** `temperature` and `top_p`; most reasoning models fix both. */
  readonly temperature: boolean;
  readonly streaming: boolean;
  /** `tool_choice: 'required'`; `auto` is sent if false. */
  readonly requiredToolChoice: boolean;
  /** The setting `parallel_tool_calls`. */
  readonly parallelTools: boolean;
  readonly responseFormat: ResponseFormat;
  readonly logprobs: boolean;
  /** The name of the output limit; some servers silently ignore the other one. */
  readonly maxTokensParameter: 'max_completion_tokens' | 'max_tokens';
  readonly images: boolean;
  /** Files such as PDFs as parts of a message. */
  readonly files: boolean;
  /** Responses API: returns its reasoning encrypted and accepts it in later requests. */
  readonly reasoningItems: boolean;
  /** Responses API: tools that the provider executes, such as `web_search`. */
  readonly nativeTools: boolean;
  /** Responses API: the tools `computer` and `computer_use_preview`. */
  readonly computerUse: boolean;
}

/**
 * The capabilities of a modern server with OpenAI's API. They are assumed for an unknown model: a
 * parameter that its server refuses is omitted at run time.
 */
export const OPTIMISTIC: ModelCapabilities = {
  systemRole: 'system',
  roleOrder: 'any',
  temperature: true,
  streaming: true,
  requiredToolChoice: true,
  parallelTools: true,
  responseFormat: 'json_schema',
  logprobs: true,
  maxTokensParameter: 'max_completion_tokens',
  images: true,
  files: true,
  reasoningItems: true,
  nativeTools: true,
  computerUse: true,
};

const NEXT_ROLES: Readonly<Record<SystemRole, readonly SystemRole[]>> = {
  developer: ['developer', 'system', 'user'],
  system: ['system', 'user'],
  user: ['user'],
};

const NEXT_FORMATS: Readonly<Record<ResponseFormat, readonly ResponseFormat[]>> = {
  json_schema: ['json_schema', 'json_object', 'none'],
  json_object: ['json_object', 'none'],
  none: ['none'],
};

/** Returns the capabilities that remain once the server has refused these parameters. */
export function reduceCapabilities(
  capabilities: ModelCapabilities,
  refused: readonly RequestParameter[],
): ModelCapabilities {
  const has = (parameter: RequestParameter): boolean => refused.includes(parameter);
  const { systemRole, responseFormat, maxTokensParameter: own } = capabilities;
  const other = own === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return {
    ...capabilities,
    systemRole:
      NEXT_ROLES[systemRole].find((role) => role === 'user' || !has(`role:${role}`)) ?? 'user',
    roleOrder: has('role_order:any') ? 'alternating' : capabilities.roleOrder,
    responseFormat:
      NEXT_FORMATS[responseFormat].find(
        (format) => format === 'none' || !has(`response_format:${format}`),
      ) ?? 'none',
    streaming: capabilities.streaming && !has('stream'),
    requiredToolChoice: capabilities.requiredToolChoice && !has('tool_choice:required'),
    logprobs: capabilities.logprobs && !has('logprobs'),
    maxTokensParameter: has(own) ? other : own,
  };
}

/** The capabilities that a config may set. */
export const capabilityOptions = z
  .strictObject({
    systemRole: z.enum(['system', 'developer', 'user']),
    roleOrder: z.enum(['any', 'alternating']),
    temperature: z.boolean(),
    streaming: z.boolean(),
    requiredToolChoice: z.boolean(),
    parallelTools: z.boolean(),
    responseFormat: z.enum(['json_schema', 'json_object', 'none']),
    logprobs: z.boolean(),
    maxTokensParameter: z.enum(['max_completion_tokens', 'max_tokens']),
    images: z.boolean(),
    files: z.boolean(),
    reasoningItems: z.boolean(),
    nativeTools: z.boolean(),
    computerUse: z.boolean(),
  } satisfies OptionSchemas<ModelCapabilities>)
  .partial();

/**
 * Returns the prices of a Claude model. All share these proportions, except for `cached`, the price
 * of a cached token as a share of `input`. Cache entries expire after five minutes. Models whose
 * price depends on the prompt's size are omitted below.
 */
function claude(input: number, cached = 0.1): ModelPrice {
  return { input, cachedInput: input * cached, cacheWrite: input * 1.25, output: input * 5 };
}

/**
 * Known facts about models, by name. Looked up 2026-11, in lists and documentation published up to
 * 2026-09; prices up to 2026-06, windows up to 2026-07. A config entry may override each value.
 *
 * `price` is that of the standard tier with short context, in US dollars per million tokens.
 * `window` is the maximum number of tokens in a prompt. That is less than the advertised window
 * where a part of it is reserved for the answer: 272,000 of the 400,000 of `gpt-5`, 922,000 of the
 * 1,050,000 of `gpt-5.4`. Figures for Claude are those published by the provider in 2026-10.
 */
export const KNOWN_MODELS: ReadonlyMap<
  string,
  { readonly price?: ModelPrice; readonly window: number }
> = new Map([
  ['gpt-5.6', { window: 922_000 }],
  ['gpt-5.6-sol', { window: 922_000 }],
  ['gpt-5.6-terra', { window: 922_000 }],
  ['gpt-5.6-luna', { window: 922_000 }],
  ['gpt-5.5', { window: 922_000, price: { input: 5, cachedInput: 0.5, output: 30 } }],
  ['gpt-5.4', { window: 922_000, price: { input: 2.5, cachedInput: 0.25, output: 15 } }],
  ['gpt-5.4-mini', { window: 272_000, price: { input: 0.75, cachedInput: 0.075, output: 4.5 } }],
  ['gpt-5.4-nano', { window: 272_000, price: { input: 0.2, cachedInput: 0.02, output: 1.25 } }],
  ['gpt-5.2', { window: 272_000, price: { input: 1.75, cachedInput: 0.175, output: 14 } }],
  ['gpt-5.1', { window: 272_000, price: { input: 1.25, cachedInput: 0.125, output: 10 } }],
  ['gpt-5', { window: 272_000, price: { input: 1.25, cachedInput: 0.125, output: 10 } }],
  ['gpt-5-mini', { window: 272_000, price: { input: 0.25, cachedInput: 0.025, output: 2 } }],
  ['gpt-5-nano', { window: 272_000, price: { input: 0.05, cachedInput: 0.005, output: 0.4 } }],
  ['gpt-4.1', { window: 1_047_576, price: { input: 2, cachedInput: 0.5, output: 8 } }],
  ['gpt-4.1-mini', { window: 1_047_576, price: { input: 0.4, cachedInput: 0.1, output: 1.6 } }],
  ['gpt-4.1-nano', { window: 1_047_576, price: { input: 0.1, cachedInput: 0.025, output: 0.4 } }],
  ['gpt-4o', { window: 128_000, price: { input: 2.5, cachedInput: 1.25, output: 10 } }],
  ['gpt-4o-mini', { window: 128_000, price: { input: 0.15, cachedInput: 0.075, output: 0.6 } }],
  ['o3', { window: 200_000, price: { input: 2, cachedInput: 0.5, output: 8 } }],
  ['o4-mini', { window: 200_000, price: { input: 1.1, cachedInput: 0.275, output: 4.4 } }],
  ['claude-fable-5-1', { window: 1_000_000, price: claude(10, 0.025) }],
  ['claude-fable-5', { window: 1_000_000, price: claude(10) }],
  ['claude-opus-5-5', { window: 1_000_000, price: claude(4, 0.05) }],
  ['claude-opus-5', { window: 1_000_000, price: claude(5) }],
  ['claude-opus-4-8', { window: 1_000_000, price: claude(5) }],
  ['claude-opus-4-7', { window: 1_000_000, price: claude(5) }],
  ['claude-opus-4-6', { window: 1_000_000, price: claude(5) }],
  ['claude-opus-4-5', { window: 200_000, price: claude(5) }],
  ['claude-sonnet-5-5', { window: 1_000_000, price: claude(2, 0.05) }],
  ['claude-sonnet-5', { window: 1_000_000, price: claude(2) }],
  ['claude-sonnet-4-6', { window: 1_000_000, price: claude(3) }],
  ['claude-sonnet-4-5', { window: 200_000, price: claude(3) }],
  ['claude-haiku-4-5', { window: 200_000, price: claude(1) }],
  ['gemini-2.5-pro', { window: 1_048_576 }],
  ['gemini-2.5-flash', { window: 1_048_576 }],
]);

const TEXT_ONLY = { images: false, files: false };

/**
 * Where models fall short of `OPTIMISTIC`; the first pattern that matches the base name decides.
 * Capabilities that depend on more than the model (the reasoning effort, the serving provider) are
 * determined at run time.
 *
 * Open weights, and names with an Ollama tag, use `max_tokens`: Ollama silently ignores
 * `max_completion_tokens`, and no other server for open weights refuses the older name.
 */
const FAMILIES: readonly (readonly [RegExp, Partial<ModelCapabilities>])[] = [
  [
    /^o1-(mini|preview)(-|$)/,
    {
      systemRole: 'user',
      temperature: false,
      requiredToolChoice: false,
      parallelTools: false,
      responseFormat: 'none',
      logprobs: false,
      ...TEXT_ONLY,
    },
  ],
  [/^o3-mini(-|$)/, { temperature: false, parallelTools: false, logprobs: false, ...TEXT_ONLY }],
  [/^o\d(-|$)/, { temperature: false, parallelTools: false, logprobs: false }],
  [/^gpt-5(-mini|-nano|-pro|-codex)?(-20[\d-]+)?$/, { temperature: false, logprobs: false }],
  [/^gpt-4o-2024-05-13$/, { responseFormat: 'json_object' }],
  [/^gpt-4-(turbo|1106|0125|vision)/, { responseFormat: 'json_object', files: false }],
  [
    /^gpt-4(-0\d{3}|-32k.*)?$/,
    { responseFormat: 'none', parallelTools: false, nativeTools: false, ...TEXT_ONLY },
  ],
  [/^gpt-3\.5(-|$)/, { responseFormat: 'json_object', nativeTools: false, ...TEXT_ONLY }],
  [
    /^deepseek-reasoner$/,
    {
      responseFormat: 'json_object',
      logprobs: false,
      maxTokensParameter: 'max_tokens',
      ...TEXT_ONLY,
    },
  ],
  [
    /^deepseek-(chat|v\d)/,
    { responseFormat: 'json_object', maxTokensParameter: 'max_tokens', ...TEXT_ONLY },
  ],
  // Claude silently ignores both, and a schema that it ignores would count as enforced.
  [/^claude-/, { responseFormat: 'none', logprobs: false }],
  [
    /:|^(codestral|deepseek|devstral|gemma|glm|granite|kimi|llama|magistral|ministral|mistral|mixtral|olmo|open-mi|phi|pixtral|qwen|qwq|smollm)/,
    { maxTokensParameter: 'max_tokens' },
  ],
];

/** OpenAI's models that do not reason refuse to return reasoning items. */
const WITHOUT_REASONING = /^(chatgpt-|gpt-3|gpt-4)/;

/** OpenAI's models older than GPT-5.4, except `computer-use-preview`, do not use a computer. */
const WITHOUT_COMPUTER = /^(chatgpt-|gpt-[34]|o\d(-|$)|gpt-5(-|$)|gpt-5\.[0-3](-|$)|codex)/;

/** Returns the model's price; null if it is unknown. */
export function findPrice(model: string): ModelPrice | null {
  return findModel(model)?.price ?? null;
}

/**
 * Returns the maximum number of tokens in a prompt; null if unknown, such as for a local server.
 */
export function findWindow(model: string): number | null {
  return findModel(model)?.window ?? null;
}

/** Returns the model's capabilities: `overrides` field by field, then known values for its name. */
export function getCapabilities(
  model: string,
  overrides: Partial<ModelCapabilities> = {},
): ModelCapabilities {
  const name = baseName(model);
  return {
    ...OPTIMISTIC,
    ...(WITHOUT_REASONING.test(name) && { reasoningItems: false }),
    ...(WITHOUT_COMPUTER.test(name) && { computerUse: false }),
    ...FAMILIES.find(([pattern]) => pattern.test(name))?.[1],
    ...overrides,
  };
}

/** The suffix of snapshots such as `gpt-4.1-2025-04-14`, which share the row of their model. */
const SNAPSHOT = /-\d{4}-?\d{2}-?\d{2}$/;

function findModel(model: string) {
  return KNOWN_MODELS.get(model) ?? KNOWN_MODELS.get(model.replace(SNAPSHOT, ''));
}

/**
 * Returns the name without its provider (`openai/gpt-4o`) and without a fine-tuning suffix
 * (`ft:gpt-4o:me::1`).
 */
function baseName(model: string): string {
  const own = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return /^ft:([^:]+)/.exec(own)?.[1] ?? own;
}

/** A model server that people run on their own machine, and its usual port. */
export interface LocalServer {
  readonly name: string;
  readonly port: number;
}

export const LOCAL_SERVERS: readonly LocalServer[] = [
  { name: 'Ollama', port: 11434 },
  { name: 'llama.cpp', port: 8080 },
  { name: 'LM Studio', port: 1234 },
  { name: 'vLLM', port: 8000 },
];

const TIMEOUT_MS = 300;

export interface RunningServer {
  readonly name: string;
  /** The value for OPENAI_BASE_URL. */
  readonly baseUrl: string;
}

/**
 * Returns the first of `servers` that lists models on this machine; null if none does within 300
 * ms.
 */
export async function findLocalServer(
  servers: readonly LocalServer[] = LOCAL_SERVERS,
): Promise<RunningServer | null> {
  const found = await Promise.all(servers.map(probeServer));
  return found.find((server) => server !== null) ?? null;
}

async function probeServer({ name, port }: LocalServer): Promise<RunningServer | null> {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  try {
    const response = await fetch(`${baseUrl}/models`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const answer: unknown = await response.json();
    // Any web server may use such a port, but only a model server lists models.
    return response.ok && isObject(answer) && Array.isArray(answer['data'])
      ? { name, baseUrl }
      : null;
  } catch {
    return null;
  }
}

/**
 * Returns the entry of `models`, or `demo`, that a name is almost, and that would be sent to a provider
 * that does not have it; else undefined. Only two letters in the other order, and one that is missing or
 * too many, are taken for a mistake: another letter, word, or digit makes the name of another model.
 */
export function meantModel(name: string, entries: readonly string[]): string | undefined {
  if (name === 'demo' || entries.includes(name)) return undefined;
  if (findPrice(name) !== null || findWindow(name) !== null) return undefined;
  return [...entries, 'demo'].find(
    (entry) =>
      digits(name) === digits(entry) && (isMistyped(name, entry) || isCutWord(name, entry)),
  );
}

/** Whether the last word of one name lacks the last letter of the other, which has at least four. */
function isCutWord(name: string, other: string): boolean {
  const [short, long] = name.length < other.length ? [name, other] : [other, name];
  return long.length === short.length + 1 && long.startsWith(short) && /[a-z]{4}$/i.test(long);
}

function digits(name: string): string {
  return name.replaceAll(/\D/g, '');
}
