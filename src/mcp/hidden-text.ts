import { countHidden, withoutHidden } from '../core/text/hidden.js';
import { wellFormed } from '../tools/utf8.js';

/** Whether a text says something that nobody sees. */
export function hasHidden(text: string): boolean {
  return countHidden(text) > 0;
}

/** The text without what nobody sees, and with a note where there was some; halves of characters are replaced. */
export function shown(text: string): string {
  const plain = wellFormed(text);
  const found = countHidden(plain);
  const clean = withoutHidden(plain);
  if (found === 0) return clean;
  return `${clean} [${found} hidden ${found === 1 ? 'character' : 'characters'} removed]`;
}
