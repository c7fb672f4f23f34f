import { wellFormed } from '../core/text/whole-text.js';
import { countHidden, withoutHidden } from '../core/text/hidden.js';

/** Returns whether a text has hidden characters. */
export function hasHidden(text: string): boolean {
  return countHidden(text) > 0;
}

/** Removes hidden characters, with a note if there were any, and replaces lone surrogates. */
export function stripHidden(text: string): string {
  const plain = wellFormed(text);
  const found = countHidden(plain);
  const clean = withoutHidden(plain);
  if (found === 0) return clean;
  return `${clean} [${found} hidden ${found === 1 ? 'character' : 'characters'} removed]`;
}
