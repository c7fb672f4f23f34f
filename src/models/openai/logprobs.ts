import { isObject } from '../../core/json.js';
import type { TokenAlternative, TokenLogprob } from '../model.js';

/** Maximum tokens whose logprobs are kept, because decisions are at the beginning of a reply. */
export const MAX_LOGPROBS = 256;
/** Maximum alternatives per token; no server returns more. */
export const MAX_TOP_LOGPROBS = 20;
const MAX_TOKEN_CHARACTERS = 100;
/** The value that servers send for a probability that rounds to zero. */
const IMPOSSIBLE = -9_999;

/**
 * Reads the `logprobs` of a choice; returns undefined if there are none. A token without a usable
 * number (minus infinity is sent as null) keeps its place with -9999, so positions stay correct.
 */
export function parseLogprobs(value: unknown): readonly TokenLogprob[] | undefined {
  const content = isObject(value) ? value['content'] : undefined;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  return content.slice(0, MAX_LOGPROBS).map((item: unknown) => {
    const entry = isObject(item) ? item : {};
    const token = typeof entry['token'] === 'string' ? entry['token'] : '';
    const own = parseAlternative(token, entry['logprob']) ?? { token, logprob: IMPOSSIBLE };
    return { ...own, top: parseAlternatives(entry['top_logprobs']) };
  });
}

/**
 * Reads the alternatives. OpenAI sends a list; some servers send an object from token to number.
 */
function parseAlternatives(value: unknown): readonly TokenAlternative[] {
  const pairs: readonly (readonly [unknown, unknown])[] = Array.isArray(value)
    ? value.filter(isObject).map(({ token, logprob }) => [token, logprob] as const)
    : Object.entries(isObject(value) ? value : {});
  return pairs
    .map(([token, logprob]) => parseAlternative(token, logprob))
    .filter((item) => item !== undefined)
    .slice(0, MAX_TOP_LOGPROBS);
}

function parseAlternative(token: unknown, logprob: unknown): TokenAlternative | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number' || !Number.isFinite(logprob)) {
    return undefined;
  }
  // Rounding makes some servers return values slightly above 0.
  return { token: token.slice(0, MAX_TOKEN_CHARACTERS), logprob: Math.min(logprob, 0) };
}
