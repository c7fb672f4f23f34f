import { isObject } from '../../core/json.js';
import type { ModelUsage } from '../model.js';

/** Reads the usage of a completion; returns undefined if it is missing or not in whole numbers. */
export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const { prompt_tokens: inputTokens, completion_tokens: completion, total_tokens: total } = value;
  if (!isCount(inputTokens) || !isCount(completion)) return undefined;
  const cached =
    readCount(value['prompt_tokens_details'], 'cached_tokens') ??
    // DeepSeek uses this name.
    readCount(value, 'prompt_cache_hit_tokens');
  const reasoning = readCount(value['completion_tokens_details'], 'reasoning_tokens');
  const listed = inputTokens + completion;
  const added = isCount(total) ? countUnlisted({ total, listed }, { reasoning, cached }) : 0;
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

/** Reads the usage of a response; returns undefined if it is missing or not in whole numbers. */
export function parseResponsesUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const { input_tokens, output_tokens, total_tokens } = value;
  return parseUsage({
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens,
    prompt_tokens_details: value['input_tokens_details'],
    completion_tokens_details: value['output_tokens_details'],
  });
}

/**
 * Finds the usage in a chunk of a stream: usually at the top level, for Moonshot in the choice, for
 * Groq in `x_groq`.
 */
export function findUsage(chunk: Record<string, unknown>): unknown {
  const { choices, x_groq: groq } = chunk;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return [chunk, choice, groq]
    .filter(isObject)
    .map(({ usage }) => usage)
    .find(isObject);
}

/**
 * Returns the output tokens in the total that are in neither the prompt nor the completion. OpenAI
 * has none: reasoning is a part of the completion. xAI and Gemini count it separately and bill it
 * as output. Some gateways count cached tokens separately; those are not output.
 */
function countUnlisted(
  counts: { readonly total: number; readonly listed: number },
  known: { readonly reasoning: number | undefined; readonly cached: number | undefined },
): number {
  const rest = counts.total - counts.listed;
  if (rest <= 0) return 0;
  if (known.reasoning !== undefined) return rest >= known.reasoning ? known.reasoning : 0;
  return rest === known.cached ? 0 : rest;
}

function readCount(details: unknown, name: string): number | undefined {
  const count = isObject(details) ? details[name] : undefined;
  return isCount(count) ? count : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
