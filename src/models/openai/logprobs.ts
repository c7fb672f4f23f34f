import { isObject } from '../../core/json.js';
import type { TokenAlternative, TokenLogprob } from '../model.js';

/** Tokens whose alternatives are kept: decisions stand at the beginning of a reply. */
export const MOST_LOGPROBS = 256;
const MOST_ALTERNATIVES = 20;
const LONGEST_TOKEN = 100;

function isLogprob(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function alternative(token: unknown, logprob: unknown): TokenAlternative | undefined {
  if (typeof token !== 'string' || !isLogprob(logprob)) return undefined;
  // Rounding takes some servers a hair above certainty.
  return { token: token.slice(0, LONGEST_TOKEN), logprob: Math.min(logprob, 0) };
}

/** A list as OpenAI sends it, or an object from token to number as some servers do. */
function alternativesOf(value: unknown): readonly TokenAlternative[] {
  const pairs: readonly (readonly [unknown, unknown])[] = Array.isArray(value)
    ? value.filter(isObject).map(({ token, logprob }) => [token, logprob] as const)
    : Object.entries(isObject(value) ? value : {});
  return pairs
    .map(([token, logprob]) => alternative(token, logprob))
    .filter((item) => item !== undefined)
    .slice(0, MOST_ALTERNATIVES);
}

/**
 * The `logprobs` of a choice; undefined where the server tells none. A token that has no usable number
 * (minus infinity comes as null) keeps its place with -9999, so that positions still count.
 */
export function logprobsOf(value: unknown): readonly TokenLogprob[] | undefined {
  const content = isObject(value) ? value['content'] : undefined;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  return content.slice(0, MOST_LOGPROBS).map((item: unknown) => {
    const told = isObject(item) ? item : {};
    const token = typeof told['token'] === 'string' ? told['token'] : '';
    const own = alternative(token, told['logprob']) ?? { token, logprob: IMPOSSIBLE };
    return { ...own, top: alternativesOf(told['top_logprobs']) };
  });
}

/** What servers write for a probability that rounds to nothing. */
const IMPOSSIBLE = -9_999;
