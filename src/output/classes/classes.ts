import { withoutTail } from '../../core/text/whole-text.js';

/** The maximum number of classes: providers return at most 20 alternatives of a token. */
export const MAX_CLASSES = 20;
const MAX_CLASS_CHARACTERS = 100;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** The two classes of a yes-or-no question, in this order. */
export const BINARY_CLASSES = ['true', 'false'] as const;

/**
 * Normalizes labels and keys for comparison: without case, outer spaces, quotes, and punctuation.
 */
export function normalizeLabel(text: string): string {
  const begun = text
    .normalize('NFC')
    .replaceAll(/[▁ĠĊ]/gu, ' ')
    .replace(/^[\s"'`*([{]+/u, '');
  return withoutTail(begun, /[\s"'`*)\]}.,:;!]/u).toLowerCase();
}

/** Describes what is wrong with a list of classes, and the fix; null if it is valid. */
export function findClassesProblem(classes: readonly string[]): string | null {
  const list: unknown = classes;
  if (!Array.isArray(list) || classes.length < 2 || classes.length > MAX_CLASSES) {
    return `classes: expected 2 to ${MAX_CLASSES}, got ${Array.isArray(list) ? list.length : JSON.stringify(list)}; a provider returns the probabilities of no more`;
  }
  const seen = new Map<string, string>();
  for (const name of classes) {
    if (typeof name !== 'string' || normalizeLabel(name) === '' || /[\r\n]/.test(name)) {
      return `classes: expected texts of one line with a letter or digit, got ${JSON.stringify(name)}`;
    }
    if (name.length > MAX_CLASS_CHARACTERS) {
      return `classes: expected at most ${MAX_CLASS_CHARACTERS} characters each, got ${name.length} in "${name.slice(0, 40)}…"`;
    }
    const same = seen.get(normalizeLabel(name));
    if (same !== undefined) {
      return `classes: expected different texts, got "${same}" and "${name}", which read the same; rename one`;
    }
    seen.set(normalizeLabel(name), name);
  }
  return null;
}

/**
 * Returns what the model answers for each class: one letter, which is a single token in every
 * relevant vocabulary. Labels of several tokens, or with a common first token, are therefore scored
 * like any other. Classes that are single letters or digits are their own keys.
 */
export function getClassKeys(classes: readonly string[]): readonly string[] {
  const areKeys = classes.every((name) => /^[a-z\d]$/i.test(name));
  return areKeys ? classes : classes.map((_, index) => LETTERS[index] ?? '');
}

/**
 * Returns the index of the class that a token stands for; -1 for none. A label counts like its key,
 * unless another label begins with it, since the token may then be the beginning of that one.
 */
export function findClassOfToken(token: string, classes: readonly string[]): number {
  const index = findClass(token, classes);
  const key = getClassKeys(classes)[index];
  const read = normalizeLabel(token);
  if (key === undefined || normalizeLabel(key) === read) return index;
  return classes.filter((name) => normalizeLabel(name).startsWith(read)).length === 1 ? index : -1;
}

/**
 * Returns the index of the class whose key or whole label the text is, regardless of case and
 * punctuation; -1 for none. A label that reads like a key means the key.
 */
export function findClass(text: string, classes: readonly string[]): number {
  const read = normalizeLabel(text);
  if (read === '') return -1;
  const byKey = getClassKeys(classes).findIndex((key) => normalizeLabel(key) === read);
  return byKey === -1 ? classes.findIndex((name) => normalizeLabel(name) === read) : byKey;
}
