import type { TokenAlternative, TokenLogprob } from '../../models/model.js';
import { classOfToken, plain } from './classes.js';
import { distribution, type Classification } from './distribution.js';

/** Smaller than what is left of a probability when a provider rounds it. */
const LEAST_MASS = 1e-6;

export type Scored =
  | { readonly ok: true; readonly classification: Classification }
  /** `problem` is for the model or the caller: what came in place of a class. */
  | { readonly ok: false; readonly problem: string };

/**
 * The probabilities of the classes from the first token of a reply that says anything.
 *
 * All spellings of a class count for it. Tokens that only open the reply (a quote, a line break) are
 * passed over, and what follows is weighed by their probability. What belongs to no class, seen or
 * unseen, is told as `outside`; the rest is normalized over the classes.
 *
 * Not ok when no class is among the alternatives, or when what looks like one is the beginning of a
 * longer word: the model answered something else.
 */
export function scoreClasses(
  classes: readonly string[],
  logprobs: readonly TokenLogprob[],
): Scored {
  const masses = classes.map(() => 0);
  const seen = new Set<number>();
  let weight = 1;
  for (const [place, position] of logprobs.entries()) {
    for (const { token, logprob } of alternativesAt(position)) {
      const index = classOfToken(token, classes);
      if (index === -1) continue;
      seen.add(index);
      masses[index] = (masses[index] ?? 0) + weight * Math.exp(logprob);
    }
    if (plain(position.token) !== '') {
      if (goesOn(position, logprobs[place + 1])) return { ok: false, problem: problemOf(logprobs) };
      break;
    }
    weight *= Math.exp(position.logprob);
  }
  if (masses.reduce((sum, mass) => sum + mass, 0) < LEAST_MASS) {
    return { ok: false, problem: problemOf(logprobs) };
  }
  const unseen = classes.filter((_, index) => !seen.has(index));
  return { ok: true, classification: distribution(classes, { masses, unseen }) };
}

/** True when a token is only the beginning of a word: the B of "B2B" is no key. */
function goesOn({ token }: TokenLogprob, next: TokenLogprob | undefined): boolean {
  return /[\p{L}\p{N}]$/u.test(token) && /^[^\P{L}ĠĊ]|^\p{N}/u.test(next?.token ?? '');
}

/** The token itself is sometimes missing among its alternatives, and never counts twice. */
function alternativesAt({ token, logprob, top }: TokenLogprob): readonly TokenAlternative[] {
  const byToken = new Map(top.map((one) => [one.token, one.logprob]));
  if (!byToken.has(token)) byToken.set(token, logprob);
  return [...byToken].map(([text, value]) => ({ token: text, logprob: value }));
}

function problemOf(logprobs: readonly TokenLogprob[]): string {
  const said = logprobs.map(({ token }) => token).join('');
  if (said === '') return 'The reply has no token with a probability.';
  return `The reply is none of the classes; it begins with ${JSON.stringify(said.slice(0, 60))}.`;
}
