import type { TokenAlternative, TokenLogprob } from '../../models/model.js';
import { findClassOfToken, normalizeLabel } from './classes.js';
import { toClassification, type Classification } from './distribution.js';

/** Smaller than the remainder of a probability that a provider has rounded. */
const MIN_MASS = 1e-6;

export type Scored =
  | { readonly ok: true; readonly classification: Classification }
  /** `problem` describes the reply that is not a class. */
  | { readonly ok: false; readonly problem: string };

/**
 * Computes the probabilities of the classes from the first meaningful token of a reply.
 *
 * All spellings of a class count for it. Tokens that only open the reply (a quote, a line break)
 * are skipped, and the next token is weighted by their probability. Probability that belongs to no
 * class is `outside`; the rest is normalized over the classes.
 *
 * The result is not ok if no class is among the alternatives, or if the apparent key is the
 * beginning of a longer word, since the model then answered something else.
 */
export function scoreClasses(
  classes: readonly string[],
  logprobs: readonly TokenLogprob[],
): Scored {
  const masses = classes.map(() => 0);
  const seen = new Set<number>();
  let weight = 1;
  for (const [place, position] of logprobs.entries()) {
    for (const { token, logprob } of listAlternatives(position)) {
      const index = findClassOfToken(token, classes);
      if (index === -1) continue;
      seen.add(index);
      masses[index] = (masses[index] ?? 0) + weight * Math.exp(logprob);
    }
    if (normalizeLabel(position.token) !== '') {
      if (continues(position, logprobs[place + 1]))
        return { ok: false, problem: describeReply(logprobs) };
      break;
    }
    weight *= Math.exp(position.logprob);
  }
  if (masses.reduce((sum, mass) => sum + mass, 0) < MIN_MASS) {
    return { ok: false, problem: describeReply(logprobs) };
  }
  const unseen = classes.filter((_, index) => !seen.has(index));
  return { ok: true, classification: toClassification(classes, { masses, unseen }) };
}

/** Adds the token itself, which is sometimes missing from its alternatives. */
function listAlternatives({ token, logprob, top }: TokenLogprob): readonly TokenAlternative[] {
  const byToken = new Map(top.map((one) => [one.token, one.logprob]));
  if (!byToken.has(token)) byToken.set(token, logprob);
  return [...byToken].map(([text, value]) => ({ token: text, logprob: value }));
}

/** Returns true if a token is only the beginning of a word: the B of "B2B" is not a key. */
function continues({ token }: TokenLogprob, next: TokenLogprob | undefined): boolean {
  return /[\p{L}\p{N}]$/u.test(token) && /^[^\P{L}ĠĊ]|^\p{N}/u.test(next?.token ?? '');
}

function describeReply(logprobs: readonly TokenLogprob[]): string {
  const text = logprobs.map(({ token }) => token).join('');
  if (text === '') return 'The reply has no token with a probability.';
  return `The reply is none of the classes; it begins with ${JSON.stringify(text.slice(0, 60))}.`;
}
