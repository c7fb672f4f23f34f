import type { Typed } from '../../core/definition/output-type.js';
import type { Classification } from './distribution.js';
import { BINARY_CLASSES, classesProblem } from './classes.js';

const MOST_SAMPLES = 100;

/** An agent's answer is one of these classes; its output is a `Classification`. */
export interface Classes<Class extends string = string> extends Typed<Classification<Class>> {
  readonly classes: readonly Class[];
  /** Absent: by the probabilities of the reply's first token. Else the model is asked so many times. */
  readonly samples?: number;
}

/**
 * Makes an agent a classifier, as its `output`: one call, and how probable each class is. `samples`
 * is for models that tell no probabilities, and costs as many calls.
 *
 * Throws for classes or samples that cannot work, with the cure.
 */
export function classify<const Class extends string>(
  classes: readonly Class[],
  { samples }: { readonly samples?: number } = {},
): Classes<Class> {
  const problem = classesProblem(classes);
  if (problem !== null) throw new Error(`classify: ${problem}`);
  if (samples === undefined) return { classes };
  if (Number.isInteger(samples) && samples >= 1 && samples <= MOST_SAMPLES) {
    return { classes, samples };
  }
  throw new Error(`classify: samples ${samples}: give a whole number from 1 to ${MOST_SAMPLES}`);
}

/** The yes-or-no question: classes `true` and `false`. */
export function binaryClassify(
  options: { readonly samples?: number } = {},
): Classes<(typeof BINARY_CLASSES)[number]> {
  return classify(BINARY_CLASSES, options);
}
