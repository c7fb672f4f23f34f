import type { Json } from '../json.js';

/** Number of characters kept of an oversized value. */
const HEAD = 2_000;

/**
 * Returns the value, or only the beginning of its JSON as text if that is longer than `characters`.
 */
export function cutValue(value: Json, characters: number): Json {
  const json = typeof value === 'string' ? value : JSON.stringify(value);
  if (json.length <= characters) return value;
  const head = json.slice(0, Math.min(HEAD, characters)).replace(/[\ud800-\udbff]$/, '');
  return `${head}… [cut: ${json.length} characters]`;
}
