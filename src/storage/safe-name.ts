import { createHash } from 'node:crypto';

/** Stays itself: short, and of characters that no file system folds, reserves or normalises. */
const PLAIN = /^[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?$/;
const READABLE_CHARACTERS = 40;

/**
 * A name for a file or folder, for any text: a short plain text is its own name, any other becomes
 * its readable part and a SHA-256. Different texts have different names, also where upper and lower
 * case are one; a name is at most 105 characters long and never leaves its folder.
 */
export function safeName(text: string): string {
  if (PLAIN.test(text)) return text;
  const readable = text
    .slice(0, 4 * READABLE_CHARACTERS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, READABLE_CHARACTERS)
    .replaceAll(/^-|-$/g, '');
  // UTF-16, because in UTF-8 all halves of surrogate pairs are the same.
  const hash = createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex');
  return readable === '' ? hash : `${readable}-${hash}`;
}
