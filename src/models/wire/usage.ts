import { isObject } from '../../core/json.js';
import type { ModelUsage } from '../model.js';

/**
 * Reads the usage of a completion or a response; returns undefined if it is missing or not in whole
 * numbers. Servers name the counts differently, send them as texts, or omit one that follows from
 * the total.
 */
export function parseUsage(value: unknown): ModelUsage | undefined {
  if (!isObject(value)) return undefined;
  const total = readCount(value, TOTAL);
  const given = {
    input: readCount(value, INPUT),
    output: readCount(value, OUTPUT),
  };
  const input = given.input ?? rest(total, given.output);
  const completion = given.output ?? rest(total, given.input);
  if (input === undefined || completion === undefined) return undefined;
  const cached = readCount(value, CACHED) ?? 0;
  const written = readCount(value, WRITTEN) ?? 0;
  const reasoning = readCount(value, REASONING);
  const listed = input + completion;
  // Some gateways count the cached tokens beside the prompt.
  const isBeside = cached > 0 && reasoning === undefined && total === listed + cached;
  const inputTokens = isBeside ? input + cached : input;
  const added = isBeside || total === undefined ? 0 : countUnlisted(total - listed, reasoning);
  const outputTokens = completion + added;
  const reasoningTokens = reasoning ?? (added > 0 ? added : undefined);
  const cachedTokens = Math.min(cached, inputTokens);
  const cacheWriteTokens = Math.min(written, inputTokens - cachedTokens);
  const costUsd = readCost(value);
  return {
    inputTokens,
    outputTokens,
    cachedTokens,
    ...(cacheWriteTokens > 0 && { cacheWriteTokens }),
    ...(reasoningTokens !== undefined && {
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
    }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

/** A place in a usage: a field, or a field of its details. */
type CountPlace = readonly [name: string, detail?: string];

const INPUT: readonly CountPlace[] = [['prompt_tokens'], ['input_tokens']];
const OUTPUT: readonly CountPlace[] = [['completion_tokens'], ['output_tokens']];
const TOTAL: readonly CountPlace[] = [['total_tokens']];

/** Where servers report the tokens that they read from their cache. */
const CACHED: readonly CountPlace[] = [
  ['prompt_tokens_details', 'cached_tokens'],
  ['input_tokens_details', 'cached_tokens'],
  // Moonshot, Together
  ['cached_tokens'],
  // DeepSeek
  ['prompt_cache_hit_tokens'],
  // Gateways to Claude
  ['cache_read_input_tokens'],
  ['prompt_tokens_details', 'cache_read_input_tokens'],
  ['num_cached_tokens'],
];

/** Where servers report the tokens that they wrote to their cache. */
const WRITTEN: readonly CountPlace[] = [
  ['prompt_tokens_details', 'cache_write_tokens'],
  ['prompt_tokens_details', 'cache_creation_tokens'],
  ['prompt_tokens_details', 'cache_creation_input_tokens'],
  ['cache_creation_input_tokens'],
];

const REASONING: readonly CountPlace[] = [
  ['completion_tokens_details', 'reasoning_tokens'],
  ['output_tokens_details', 'reasoning_tokens'],
  ['reasoning_tokens'],
];

/** Returns the largest count at these places; undefined if there is none. */
function readCount(
  usage: Record<string, unknown>,
  places: readonly CountPlace[],
): number | undefined {
  const counts = places
    .map(([name, detail]) => {
      const value = usage[name];
      if (detail === undefined) return toCount(value);
      return isObject(value) ? toCount(value[detail]) : undefined;
    })
    .filter((count) => count !== undefined);
  return counts.length === 0 ? undefined : Math.max(...counts);
}

/** Returns a whole number from 0, which may be written as a text; undefined for anything else. */
export function toCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

/** Returns the cost in US dollars that a router reports; undefined if it reports none. */
function readCost({ cost }: Record<string, unknown>): number | undefined {
  const dollars = isObject(cost) ? cost['total_cost'] : cost;
  const isCost = typeof dollars === 'number' && Number.isFinite(dollars) && dollars >= 0;
  return isCost ? dollars : undefined;
}

/**
 * Finds the usage in a completion or a chunk of a stream: usually at the top level, for Moonshot in
 * the choice, for Groq in `x_groq`. Returns undefined if there is none that can be read.
 */
export function findUsage(chunk: Record<string, unknown>): unknown {
  const { choices, x_groq: groq } = chunk;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return [chunk, choice, groq]
    .filter(isObject)
    .map(({ usage }) => usage)
    .find((usage) => parseUsage(usage) !== undefined);
}

/**
 * Returns the output tokens that are in the total, but in neither the prompt nor the completion.
 * OpenAI has none: reasoning is a part of the completion. xAI and Gemini count it separately and
 * bill it as output.
 */
function countUnlisted(unlisted: number, reasoning: number | undefined): number {
  if (unlisted <= 0) return 0;
  if (reasoning === undefined) return unlisted;
  return unlisted >= reasoning ? reasoning : 0;
}
