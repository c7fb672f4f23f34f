import { show } from '../text/format-value.js';

/** Maximum number of tags. The memo holds them, and the server limits its size. */
const MAX_TAGS = 50;
const MAX_TAG_CHARACTERS = 200;
const MAX_BY_CHARACTERS = 200;

/** Returns what is wrong with the tags of an input, or null. */
export function checkTags(value: unknown): string | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || !value.every(isTag)) {
    return `tags: expected a list of strings of 1–${MAX_TAG_CHARACTERS} characters, got ${show(value)}; give for example ["billing"]`;
  }
  if (value.length <= MAX_TAGS) return null;
  return `tags: expected at most ${MAX_TAGS}, got ${value.length}; give fewer`;
}

function isTag(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TAG_CHARACTERS;
}

/** Returns the problem with a claimed decider's name, or null. */
export function checkBy(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_BY_CHARACTERS) return null;
  return `by: expected a string of 1–${MAX_BY_CHARACTERS} characters, got ${show(value)}`;
}
