import { sha256Hex } from '../core/digest.js';

const MOST_CHARACTERS = 64;
const SUFFIX_DIGITS = 8;

/**
 * The name under which a model knows a tool of a server: `<server>__<tool>`. What providers do not
 * take in a name, or what makes it too long, is replaced; such a name ends in digits made of the
 * original one, so that no two become the same and each stays what it is from run to run.
 */
export function toolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`;
  const clean = plain.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  if (clean === plain && clean.length <= MOST_CHARACTERS) return clean;
  const suffix = `_${sha256Hex(tool).slice(0, SUFFIX_DIGITS)}`;
  return clean.slice(0, MOST_CHARACTERS - suffix.length) + suffix;
}
