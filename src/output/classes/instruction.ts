import { classKeys } from './classes.js';

/**
 * What asks a model for a class by its key. Goes after the material that is to be classified, as the
 * last message: a function of nothing but the classes, so that the prompt before it stays cached.
 */
export function classifyInstruction(classes: readonly string[]): string {
  const keys = classKeys(classes);
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

/** What tells a model that its reply was none of the classes. */
export function classifyReminder(classes: readonly string[]): string {
  return `That was none of the choices. Reply with one of these characters only: ${classKeys(classes).join(', ')}`;
}

/** Every key may come in two cases, with or without a space before it, and something else besides. */
const SPELLINGS = 2;
const MOST_ALTERNATIVES = 20;

/** How many alternatives to ask for, as `logprobs.top`; few, since some servers tell only 5. */
export function alternativesFor(classes: readonly string[]): number {
  return Math.min(MOST_ALTERNATIVES, classes.length * SPELLINGS + 1);
}

/** Room for the key and what may stand around it, such as a quote or a line break. */
export const CLASSIFY_OUTPUT_TOKENS = 4;
