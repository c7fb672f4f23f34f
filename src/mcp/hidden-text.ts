import { wellFormed } from '../tools/utf8.js';

/**
 * Characters that a person who reads a text does not see: control characters, formats (zero width,
 * direction, tags), private use, variation selectors. Line breaks and tabs are seen.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\u{FE00}-\u{FE0F}\u{E0100}-\u{E01EF}]/gu;

/** Whether a text says something that nobody sees. */
export function hasHidden(text: string): boolean {
  return text.search(HIDDEN) !== -1;
}

/** The text without what nobody sees, and with a note where there was some; halves of characters are replaced. */
export function shown(text: string): string {
  const plain = wellFormed(text.replaceAll('\r\n', '\n'));
  const found = plain.match(HIDDEN)?.length ?? 0;
  if (found === 0) return plain;
  return `${plain.replaceAll(HIDDEN, '')} [${found} hidden ${found === 1 ? 'character' : 'characters'} removed]`;
}
