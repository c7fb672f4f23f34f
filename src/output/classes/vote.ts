import { findClass } from './classes.js';
import { toClassification } from './distribution.js';
import type { Scored } from './score.js';

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
