import { isObject, parseJson } from '../../core/text/json.js';

/** The arguments of a streamed call so far. */
export interface StreamedArguments {
  /** Adds the next part, and returns what of it to show: nothing after the arguments are complete. */
  add(part: string): string;
  /** True if the parts so far are one whole object; it parses at most once. */
  isComplete(): boolean;
  /** Whether a part has the complete arguments again, or more of them. */
  isRepeatedBy(part: string): boolean;
  /** The parts so far, joined. */
  readonly text: string;
  /** Returns the arguments, and the rest of them to show, once the last part has arrived. */
  finish(): { readonly text: string; readonly unshown: string };
}

/** Whether a text is an object without fields, which some servers send before the real arguments. */
export function isEmptyObject(text: string): boolean {
  return text.length < 16 && /^\s*\{\s*\}\s*$/.test(text);
}

/**
 * Joins the arguments of a streamed call. Besides parts to join, servers send the whole arguments
 * again, an empty object before them, or longer and longer beginnings of them.
 */
export function joinArguments(): StreamedArguments {
  let scanner = createObjectScanner();
  let text = '';
  let held = '';
  let hasShown = false;
  /** The newest part, while each part repeats all earlier ones; undefined otherwise. */
  let newest: string | undefined = '';
  let isJson: boolean | undefined;

  const isComplete = (): boolean => {
    if (!scanner.isBalanced()) return false;
    isJson ??= isObject(parseJson(text));
    return isJson;
  };

  return {
    get text() {
      return text;
    },
    isComplete,
    add(part) {
      if (part === '') return '';
      if (held !== '' && part.trimStart().startsWith('{')) {
        // The empty object was not the arguments.
        [text, held, newest, isJson] = ['', '', '', undefined];
        scanner = createObjectScanner();
      }
      const wasBalanced = scanner.isBalanced();
      if (newest !== undefined) newest = part.startsWith(newest) ? part : undefined;
      text += part;
      scanner.add(part);
      if (wasBalanced && held === '') return '';
      const isHeld = !hasShown && isEmptyObject(text);
      held = isHeld ? text : '';
      hasShown ||= !isHeld;
      return isHeld ? '' : part;
    },
    isRepeatedBy(part) {
      if (part === text || isEmptyObject(text)) return true;
      const value = parseJson(part);
      return isObject(value) && continues(value, parseJson(text));
    },
    finish: () => ({ text: settleArguments(text, newest), unshown: held }),
  };
}

/** Returns the one object that joined parts mean; the joined text if they mean none, or several. */
function settleArguments(text: string, newest: string | undefined): string {
  if (isObject(parseJson(text))) return text;
  if (newest !== undefined && isObject(parseJson(newest))) return newest;
  return findNewestObject(text) ?? text;
}

/** Maximum objects that one text is split into. */
const MAX_OBJECTS = 1_000;

/**
 * Returns the last of several objects in a row if each one repeats or continues the one before it;
 * undefined for any other text.
 */
function findNewestObject(text: string): string | undefined {
  let newest: { readonly text: string; readonly value: unknown } | undefined;
  let from = 0;
  for (let count = 0; count < MAX_OBJECTS; count += 1) {
    const end = findObjectEnd(text, from);
    if (end === undefined) return text.slice(from).trim() === '' ? newest?.text : undefined;
    const part = text.slice(from, end);
    const value = parseJson(part);
    if (!isObject(value)) return undefined;
    if (newest !== undefined && !continues(value, newest.value)) return undefined;
    newest = { text: part.trim(), value };
    from = end;
  }
  return undefined;
}

/** Returns the place after the object that begins here; undefined if none does, or it has no end. */
function findObjectEnd(text: string, from: number): number | undefined {
  const scanner = createObjectScanner();
  for (let at = from; at < text.length; at += 1) {
    scanner.add(text.charAt(at));
    if (scanner.isBalanced()) return at + 1;
    if (scanner.isBroken()) return undefined;
  }
  return undefined;
}

/** Levels of nesting that are compared. */
const MAX_DEPTH = 64;

/** Whether a value holds all of an earlier one; only texts and lists may be longer. */
function continues(value: unknown, earlier: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false;
  if (typeof value === 'string' && typeof earlier === 'string') return value.startsWith(earlier);
  if (Array.isArray(value) && Array.isArray(earlier)) {
    return earlier.every((item, index) => continues(value[index], item, depth + 1));
  }
  if (isObject(value) && isObject(earlier)) {
    return Object.entries(earlier).every(([key, item]) => continues(value[key], item, depth + 1));
  }
  return earlier === null || value === earlier;
}

/** Checks whether a text that arrives in parts is a single object, without parsing it. */
interface ObjectScanner {
  /** Adds the next part, which is scanned only when the result is needed. */
  add(part: string): void;
  /**
   * Returns true if the text begins with `{`, its brackets are balanced, and only whitespace
   * follows. It may not be JSON.
   */
  isBalanced(): boolean;
  /** Returns true if the text is no object, or has more than one. */
  isBroken(): boolean;
}

const WHITE_SPACE = new Set([' ', '\t', '\n', '\r']);

/** Creates a scanner that scans each character once, regardless of the number of parts. */
export function createObjectScanner(): ObjectScanner {
  let unread: string[] = [];
  let depth = 0;
  let state: 'before' | 'inside' | 'text' | 'escape' | 'after' | 'broken' = 'before';

  const scan = (character: string): void => {
    switch (state) {
      case 'escape':
        state = 'text';
        return;
      case 'text':
        if (character === '\\') state = 'escape';
        else if (character === '"') state = 'inside';
        return;
      case 'inside':
        if (character === '"') state = 'text';
        else if (character === '{' || character === '[') depth += 1;
        else if (character === '}' || character === ']') depth -= 1;
        if (depth === 0) state = 'after';
        return;
      case 'before':
        depth = character === '{' ? 1 : 0;
        if (!WHITE_SPACE.has(character)) state = depth === 1 ? 'inside' : 'broken';
        return;
      case 'after':
        if (!WHITE_SPACE.has(character)) state = 'broken';
        return;
      case 'broken':
    }
  };

  const scanUnread = (): void => {
    for (const part of unread) {
      for (let at = 0; at < part.length; at += 1) scan(part.charAt(at));
    }
    unread = [];
  };

  return {
    add(part) {
      if (part !== '' && state !== 'broken') unread.push(part);
    },
    isBalanced() {
      scanUnread();
      return state === 'after';
    },
    isBroken() {
      scanUnread();
      return state === 'broken';
    },
  };
}
