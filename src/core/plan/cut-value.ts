import { headOf } from '../text/whole-text.js';
import type { Json } from '../json.js';

/** Number of characters kept of an oversized value. */
const HEAD = 2_000;

/**
 * Returns the value, or only the beginning of its JSON as text if that is longer than `characters`.
 */
export function cutValue(value: Json, characters: number): Json {
  const json = typeof value === 'string' ? value : JSON.stringify(value);
  if (json.length <= characters) return value;
  const head = headOf(json, Math.min(HEAD, characters));
  return `${head}… [cut: ${json.length} characters]`;
}
