import type { ModelCapabilities } from '../capabilities.js';
import { getCapabilities } from '../known-models.js';

/**
 * The capabilities of Anthropic's own API, unlike servers that offer Claude through OpenAI's API.
 */
const OWN: Partial<ModelCapabilities> = {
  // The API version of the SDK (2026-10-21) has neither `temperature` nor `top_p`.
  temperature: false,
  roleOrder: 'alternating',
  responseFormat: 'json_schema',
  logprobs: false,
  maxTokensParameter: 'max_tokens',
  nativeTools: false,
  computerUse: false,
};

/** Models before Claude 4.5 do not enforce a JSON schema. */
const WITHOUT_SCHEMA = /^claude-(?:instant|[123]|(?:opus|sonnet)-4(?:-[01])?(?:-\d{8})?$)/;

/** Models that refuse `tool_choice: 'any'`, because they may always think before a call. */
const WITHOUT_FORCED_TOOLS = /^claude-(?:fable|mythos|[a-z]+-5-5)/;

/**
 * Returns a model's capabilities at Anthropic's API: `overrides` field by field, then known values.
 */
export function getAnthropicCapabilities(
  model: string,
  overrides: Partial<ModelCapabilities> = {},
): ModelCapabilities {
  return getCapabilities(model, {
    ...OWN,
    ...(WITHOUT_SCHEMA.test(model) && { responseFormat: 'none' }),
    ...(WITHOUT_FORCED_TOOLS.test(model) && { requiredToolChoice: false }),
    ...overrides,
  });
}

/**
 * Maximum tokens of a reply for models that accept less than `DEFAULT_OUTPUT`, by the beginning of
 * the name.
 */
const SMALLER_OUTPUTS: readonly (readonly [RegExp, number])[] = [
  [/^claude-3-(?:haiku|opus|sonnet)/, 4_096],
  [/^claude-3-5/, 8_192],
];

/** Every model since Claude 3.7 accepts it. The API has no default. */
const DEFAULT_OUTPUT = 32_000;

/** Returns the `max_tokens` of a request without `maxOutputTokens`. */
export function getDefaultOutput(model: string): number {
  return SMALLER_OUTPUTS.find(([pattern]) => pattern.test(model))?.[1] ?? DEFAULT_OUTPUT;
}
