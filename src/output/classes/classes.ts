import { z } from 'zod';
import type { Typed } from '../../core/definition/agent-types.js';
import { InputError } from '../../core/errors.js';
import { withoutTail } from '../../core/text/text.js';
import type { TokenAlternative, TokenLogprob } from '../../models/model.js';
import { checkOptions } from '../../validation/check-options.js';

/** The maximum number of classes: providers return at most 20 alternatives of a token. */
export const MAX_CLASSES = 20;
const MAX_CLASS_CHARACTERS = 100;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** The two classes of a yes-or-no question, in this order. */
export const BINARY_CLASSES = ['true', 'false'] as const;

/**
 * Normalizes labels and keys for comparison: without case, outer spaces, quotes, and punctuation.
 */
export function normalizeLabel(text: string): string {
  const begun = text
    .normalize('NFC')
    .replaceAll(/[▁ĠĊ]/gu, ' ')
    .replace(/^[\s"'`*([{]+/u, '');
  return withoutTail(begun, /[\s"'`*)\]}.,:;!]/u).toLowerCase();
}

/** Describes what is wrong with a list of classes, and the fix; null if it is valid. */
export function findClassesProblem(classes: readonly string[]): string | null {
  const list: unknown = classes;
  if (!Array.isArray(list) || classes.length < 2 || classes.length > MAX_CLASSES) {
    return `classes: expected 2 to ${MAX_CLASSES}, got ${Array.isArray(list) ? list.length : JSON.stringify(list)}; a provider returns the probabilities of no more`;
  }
  const seen = new Map<string, string>();
  for (const name of classes) {
    if (typeof name !== 'string' || normalizeLabel(name) === '' || /[\r\n]/.test(name)) {
      return `classes: expected texts of one line with a letter or digit, got ${JSON.stringify(name)}`;
    }
    if (name.length > MAX_CLASS_CHARACTERS) {
      return `classes: expected at most ${MAX_CLASS_CHARACTERS} characters each, got ${name.length} in "${name.slice(0, 40)}…"`;
    }
    const same = seen.get(normalizeLabel(name));
    if (same !== undefined) {
      return `classes: expected different texts, got "${same}" and "${name}", which read the same; rename one`;
    }
    seen.set(normalizeLabel(name), name);
  }
  return null;
}

/**
 * Returns what the model answers for each class: one letter, which is a single token in every
 * relevant vocabulary. Labels of several tokens, or with a common first token, are therefore scored
 * like any other. Classes that are single letters or digits are their own keys.
 */
export function getClassKeys(classes: readonly string[]): readonly string[] {
  const areKeys = classes.every((name) => /^[a-z\d]$/i.test(name));
  return areKeys ? classes : classes.map((_, index) => LETTERS[index] ?? '');
}

/**
 * Returns the index of the class that a token stands for; -1 for none. A label counts like its key,
 * unless another label begins with it, since the token may then be the beginning of that one.
 */
function findClassOfToken(token: string, classes: readonly string[]): number {
  const index = findClass(token, classes);
  const key = getClassKeys(classes)[index];
  const read = normalizeLabel(token);
  if (key === undefined || normalizeLabel(key) === read) return index;
  return classes.filter((name) => normalizeLabel(name).startsWith(read)).length === 1 ? index : -1;
}

/**
 * Returns the index of the class whose key or whole label the text is, regardless of case and
 * punctuation; -1 for none. A label that reads like a key means the key.
 */
export function findClass(text: string, classes: readonly string[]): number {
  const read = normalizeLabel(text);
  if (read === '') return -1;
  const byKey = getClassKeys(classes).findIndex((key) => normalizeLabel(key) === read);
  return byKey === -1 ? classes.findIndex((name) => normalizeLabel(name) === read) : byKey;
}

/** The probability of each class. */
export interface Classification<Class extends string = string> {
  /** The most probable class; the first of several equal ones. */
  readonly best: Class;
  /** The probabilities in the order of the classes; they sum to 1. */
  readonly classes: readonly { readonly name: Class; readonly probability: number }[];
  /** The probability, from 0 to 1, that belonged to no class before normalization. */
  readonly outside: number;
  /**
   * The entropy in bits: 0 if the model is certain, log2 of the number of classes if it is
   * undecided.
   */
  readonly entropyBits: number;
  /** Classes missing from the top logprobs; they have probability 0. */
  readonly unseen: readonly Class[];
  /** The number of answers, if the classes were determined by votes. */
  readonly samples?: number;
}

/** Normalizes the masses of the classes, which must not all be 0, into a classification. */
function toClassification(
  names: readonly string[],
  {
    masses,
    unseen,
    whole = 1,
  }: { masses: readonly number[]; unseen: readonly string[]; whole?: number },
): Classification {
  const sum = masses.reduce((total, mass) => total + mass, 0);
  const classes = names.map((name, index) => ({ name, probability: (masses[index] ?? 0) / sum }));
  const best = classes.reduce((most, one) => (one.probability > most.probability ? one : most));
  const entropy = classes.reduce(
    (bits, { probability }) =>
      probability > 0 ? bits - probability * Math.log2(probability) : bits,
    0,
  );
  return {
    best: best.name,
    classes,
    // Alternatives are rounded one by one, so their sum may slightly exceed 1.
    outside: Math.max(0, 1 - sum / whole),
    entropyBits: Math.max(0, entropy),
    unseen,
  };
}

const MAX_SAMPLES = 100;
const EXPECTED_SAMPLES = `expected a whole number from 1 to ${MAX_SAMPLES}`;

const classifyOptions = z.strictObject({
  samples: z
    .int(EXPECTED_SAMPLES)
    .min(1, EXPECTED_SAMPLES)
    .max(MAX_SAMPLES, EXPECTED_SAMPLES)
    .optional(),
});

/** An agent's answer is one of these classes; its output is a `Classification`. */
export interface Classes<Class extends string = string> extends Typed<Classification<Class>> {
  readonly classes: readonly Class[];
  /**
   * How many times the model is asked. If absent, the probabilities of the reply's first token are
   * used.
   */
  readonly samples?: number;
}

/**
 * Makes an agent a classifier when used as its `output`: one call gives the probability of each
 * class. `samples` is for models that return no probabilities; each sample costs one call.
 *
 * Throws an `InputError` for unusable classes or samples.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { classify } from 'perdure/output';
 *
 * export const mood = defineAgent({
 *   name: 'mood',
 *   instructions: 'Is the review good or bad?',
 *   output: classify(['good', 'bad']),
 * });
 * ```
 */
export function classify<const Class extends string>(
  classes: readonly Class[],
  options: { readonly samples?: number } = {},
): Classes<Class> {
  const problem = findClassesProblem(classes);
  if (problem !== null) throw new InputError(`classify: ${problem}`);
  checkOptions('classify', { schema: classifyOptions, options });
  const { samples } = options;
  return samples === undefined ? { classes } : { classes, samples };
}

/**
 * Creates the classes `true` and `false`, for a yes-or-no question.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { binaryClassify } from 'perdure/output';
 *
 * export const urgent = defineAgent({
 *   name: 'urgent',
 *   instructions: 'Does the mail need an answer today?',
 *   output: binaryClassify(),
 * });
 * ```
 */
export function binaryClassify(
  options: { readonly samples?: number } = {},
): Classes<(typeof BINARY_CLASSES)[number]> {
  return classify(BINARY_CLASSES, options);
}

/**
 * Asks a model for the key of a class. The text is the last message, after the material to
 * classify, and depends only on the classes, so that the prompt before it stays cached.
 */
export function classifyInstruction(classes: readonly string[]): string {
  const keys = getClassKeys(classes);
  const isPlain = keys === classes;
  const listed = classes.map((name, index) => (isPlain ? name : `${keys[index]} = ${name}`));
  return [
    isPlain
      ? 'Decide which one of these answers is right:'
      : 'Decide which one of these classes fits:',
    ...listed,
    isPlain
      ? 'Reply with that single character and nothing else.'
      : 'Reply with its letter, a single character, and nothing else.',
    'If you are not sure, reply with the most likely one.',
  ].join('\n');
}

/** Tells a model that its reply was none of the classes. */
export function classifyReminder(classes: readonly string[]): string {
  return `That was none of the choices. Reply with one of these characters only: ${getClassKeys(classes).join(', ')}`;
}

/** A key may occur in several spellings, such as with a space before it. */
const SPELLINGS = 2;
const MAX_ALTERNATIVES = 20;

/**
 * Returns how many alternatives to ask for as `logprobs.top`; few, since some servers return only
 * 5.
 */
export function countAlternatives(classes: readonly string[]): number {
  return Math.min(MAX_ALTERNATIVES, classes.length * SPELLINGS + 1);
}

/** Leaves room for the key and characters around it, such as a quote or a line break. */
export const CLASSIFY_OUTPUT_TOKENS = 4;

/** Smaller than the remainder of a probability that a provider has rounded. */
const MIN_MASS = 1e-6;

type Scored =
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

/**
 * Matches a key with something after it: `B: refund`, `**B**) refund`; not the article in "A
 * refund".
 */
const KEYED = /^[\s"'`*([]*([\p{L}\d])[\s"'`*)\]]*(?:[.:)\]=\n]|[-–—]\s)/u;

/** Returns the index of the class that an answer names; -1 for none. */
export function parseClass(classes: readonly string[], answer: string): number {
  const whole = findClass(answer, classes);
  if (whole !== -1) return whole;
  const key = KEYED.exec(answer)?.[1];
  return key === undefined ? -1 : findClass(key, classes);
}

/**
 * Computes a classification from several answers to one question, for models that return no
 * probabilities: the share of each class among the answers that name a class. The result is not ok
 * if none does.
 *
 * The number of answers limits the resolution: ten answers cannot show a probability of 5 %.
 */
export function voteClasses(classes: readonly string[], answers: readonly string[]): Scored {
  const votes = answers.map((answer) => parseClass(classes, answer));
  const masses = classes.map((_, index) => votes.filter((vote) => vote === index).length);
  if (masses.every((mass) => mass === 0)) {
    const first = answers[0];
    const shown = first === undefined ? '' : `; the first is ${JSON.stringify(first.slice(0, 60))}`;
    return { ok: false, problem: `None of ${answers.length} answers is a class${shown}.` };
  }
  const unseen = classes.filter((_, index) => masses[index] === 0);
  const classification = toClassification(classes, { masses, unseen, whole: answers.length });
  return { ok: true, classification: { ...classification, samples: answers.length } };
}
