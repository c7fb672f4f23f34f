import { z } from 'zod';
import { InputError } from '../../core/errors.js';
import type { Typed } from '../../core/definition/output-type.js';
import { checkOptions } from '../../validation/check-options.js';
import type { Classification } from './distribution.js';
import { BINARY_CLASSES, findClassesProblem } from './classes.js';

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
