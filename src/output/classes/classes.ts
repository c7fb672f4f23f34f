/** Providers tell 20 alternatives of a token at most, so no more classes can be weighed. */
export const MOST_CLASSES = 20;
const LONGEST_CLASS = 100;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** The two classes of a yes-or-no question, in this order. */
export const BINARY_CLASSES = ['true', 'false'] as const;

/** A text as labels and keys are compared: without case, outer space, quotes and punctuation. */
export function plain(text: string): string {
  return text
    .normalize('NFC')
    .replaceAll(/[▁ĠĊ]/gu, ' ')
    .replace(/^[\s"'`*([{]+/u, '')
    .replace(/[\s"'`*)\]}.,:;!]+$/u, '')
    .toLowerCase();
}

/** What is wrong with a list of classes, with the cure; null when nothing is. */
export function classesProblem(classes: readonly string[]): string | null {
  const list: unknown = classes;
  if (!Array.isArray(list) || classes.length < 2 || classes.length > MOST_CLASSES) {
    return `give 2 to ${MOST_CLASSES} classes; a provider tells the probabilities of no more`;
  }
  const seen = new Map<string, string>();
  for (const name of classes) {
    if (typeof name !== 'string' || plain(name) === '' || /[\r\n]/.test(name)) {
      return `class ${JSON.stringify(name)}: give a text of one line with a letter or digit in it`;
    }
    if (name.length > LONGEST_CLASS) {
      return `class "${name.slice(0, 40)}…" has ${name.length} characters; give at most ${LONGEST_CLASS}`;
    }
    const same = seen.get(plain(name));
    if (same !== undefined) {
      return `classes "${same}" and "${name}" read the same; rename one of them`;
    }
    seen.set(plain(name), name);
  }
  return null;
}

/**
 * What the model answers for each class: one letter, a single token in every vocabulary that matters,
 * and no two alike. So labels of several tokens, or that begin with the same token, weigh as well as
 * any. Classes that are single letters or digits themselves stand for themselves.
 */
export function classKeys(classes: readonly string[]): readonly string[] {
  const areKeys = classes.every((name) => /^[a-z\d]$/i.test(name));
  return areKeys ? classes : classes.map((_, index) => LETTERS[index] ?? '');
}

/**
 * The class that a token stands for, as an index; -1 for none. A label counts like its key, unless
 * another label begins with it: then the token may be the beginning of that one.
 */
export function classOfToken(token: string, classes: readonly string[]): number {
  const index = classIndex(token, classes);
  const key = classKeys(classes)[index];
  const read = plain(token);
  if (key === undefined || plain(key) === read) return index;
  return classes.filter((name) => plain(name).startsWith(read)).length === 1 ? index : -1;
}

/**
 * The class that a text is: its key or its whole label, with or without case and punctuation; the
 * index in the list, or -1. A label that reads like a key means the key.
 */
export function classIndex(text: string, classes: readonly string[]): number {
  const read = plain(text);
  if (read === '') return -1;
  const byKey = classKeys(classes).findIndex((key) => plain(key) === read);
  return byKey === -1 ? classes.findIndex((name) => plain(name) === read) : byKey;
}
