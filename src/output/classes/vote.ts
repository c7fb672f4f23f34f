import { classIndex } from './classes.js';
import { distribution } from './distribution.js';
import type { Scored } from './score.js';

/** A key with something after it: `B: refund`, `**B**) refund`, `B - refund`. Not "A refund": that is an article. */
const KEYED = /^[\s"'`*([]*([\p{L}\d])[\s"'`*)\]]*(?:[.:)\]=\n]|[-–—]\s)/u;

/** The class that an answer is, as an index; -1 when it is none. */
export function readClass(classes: readonly string[], answer: string): number {
  const whole = classIndex(answer, classes);
  if (whole !== -1) return whole;
  const key = KEYED.exec(answer)?.[1];
  return key === undefined ? -1 : classIndex(key, classes);
}

/**
 * The classification from the answers to the same question asked several times, for models that tell
 * no probabilities: the share of each class among the answers that are classes. Not ok when none is.
 *
 * The resolution is that of the count: of ten answers none says anything about one in twenty.
 */
export function voteClasses(classes: readonly string[], answers: readonly string[]): Scored {
  const votes = answers.map((answer) => readClass(classes, answer));
  const masses = classes.map((_, index) => votes.filter((vote) => vote === index).length);
  if (masses.every((mass) => mass === 0)) {
    const first = answers[0];
    const said =
      first === undefined ? 'there are none' : `one is ${JSON.stringify(first.slice(0, 60))}`;
    return { ok: false, problem: `None of ${answers.length} answers is a class; ${said}.` };
  }
  const unseen = classes.filter((_, index) => masses[index] === 0);
  const classification = distribution(classes, { masses, unseen, whole: answers.length });
  return { ok: true, classification: { ...classification, samples: answers.length } };
}
