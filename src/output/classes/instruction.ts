import { getClassKeys } from './classes.js';

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
