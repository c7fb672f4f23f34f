import type { Json } from '../json.js';

/** Characters that are left of a value that is too large. */
const HEAD = 2_000;

/** Returns a value whose JSON has at most so many characters: else the beginning of it, as a text. */
export function cutValue(value: Json, characters: number): Json {
  const json = typeof value === 'string' ? value : JSON.stringify(value);
  if (json.length <= characters) return value;
  const head = json.slice(0, Math.min(HEAD, characters)).replace(/[\ud800-\udbff]$/, '');
  return `${head}… [cut: ${json.length} characters]`;
}
