import { isObject } from '../../core/json.js';
import type { ModelUsage } from '../model.js';

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Where a chunk of a stream tells it: mostly at its top, Moonshot in the choice, Groq in `x_groq`. */
export function usageIn(chunk: Record<string, unknown>): unknown {
  const { choices, x_groq: groq } = chunk;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return [chunk, choice, groq]
    .filter(isObject)
    .map(({ usage }) => usage)
    .find(isObject);
}

function countIn(details: unknown, name: string): number | undefined {
  const count = isObject(details) ? details[name] : undefined;
  return isCount(count) ? count : undefined;
}

/**
 * Tokens that the total holds beside prompt and completion. At OpenAI there are none: reasoning is a
 * part of the completion. xAI and Gemini count it apart, and bill it as output all the same. Some
 * gateways count cached tokens apart; those are no output.
 */
function apart(
  counts: { readonly total: number; readonly listed: number },
  told: { readonly reasoning: number | undefined; readonly cached: number | undefined },
): number {
  const rest = counts.total - counts.listed;
  if (rest <= 0) return 0;
  if (told.reasoning !== undefined) return rest >= told.reasoning ? told.reasoning : 0;
  return rest === told.cached ? 0 : rest;
}

/** The usage of a response; undefined where the provider did not tell it in whole numbers. */
export function responsesUsageOf(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const { input_tokens, output_tokens, total_tokens } = value;
  return usageOf({
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens,
    prompt_tokens_details: value['input_tokens_details'],
    completion_tokens_details: value['output_tokens_details'],
  });
}

/** The usage of a completion; undefined where the provider did not tell it in whole numbers. */
export function usageOf(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const { prompt_tokens: inputTokens, completion_tokens: completion, total_tokens: total } = value;
  if (!isCount(inputTokens) || !isCount(completion)) return undefined;
  const cached =
    countIn(value['prompt_tokens_details'], 'cached_tokens') ??
    // As DeepSeek names it.
    countIn(value, 'prompt_cache_hit_tokens');
  const reasoning = countIn(value['completion_tokens_details'], 'reasoning_tokens');
  const listed = inputTokens + completion;
  const added = isCount(total) ? apart({ total, listed }, { reasoning, cached }) : 0;
  const outputTokens = completion + added;
  const reasoningTokens = reasoning ?? (added > 0 ? added : undefined);
  return {
    inputTokens,
    outputTokens,
    cachedTokens: Math.min(cached ?? 0, inputTokens),
    ...(reasoningTokens !== undefined && {
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
    }),
  };
}
