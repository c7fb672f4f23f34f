import type { ModelPrice } from '../core/definition/definition.js';
import { OPTIMISTIC, type ModelCapabilities } from './capabilities.js';

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
const MODELS: ReadonlyMap<string, { readonly price?: ModelPrice; readonly window: number }> =
  new Map([
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
  return MODELS.get(model) ?? MODELS.get(model.replace(SNAPSHOT, ''));
}

/**
 * Returns the name without its provider (`openai/gpt-4o`) and without a fine-tuning suffix
 * (`ft:gpt-4o:me::1`).
 */
function baseName(model: string): string {
  const own = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return /^ft:([^:]+)/.exec(own)?.[1] ?? own;
}
