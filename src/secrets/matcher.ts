import { formsOf, tailOf } from './forms.js';
import type { Secret } from './values.js';

/** The place of a secret in a text. */
export interface Span {
  readonly from: number;
  /** The offset after its last character. */
  to: number;
  name: string;
}

/** A search for secrets. */
export interface Matcher {
  /** Returns the places of all secrets in a text, in order and without overlaps. */
  find(text: string): readonly Span[];
  /**
   * Returns the offset from which the end of a text may begin a secret, or the length of the text.
   */
  openFrom(text: string): number;
}

/**
 * A form that is searched for. `seed` reveals it; the rest of the form is matched around the seed.
 */
interface Pattern {
  readonly name: string;
  readonly form: string;
  readonly seed: string;
  /** The offset of the search window in the seed. */
  readonly window: number;
  /** Whether the seed is the end of the form, not its start. */
  readonly isTail: boolean;
}

/** Characters per hashed block. */
const BLOCK = 3;
const TABLE = 1 << 16;

/**
 * Compiles secrets for a search in one pass (Wu and Manber): for each block of three characters, a
 * table holds how far the search may advance. The time depends on the length of the text, not on
 * the number of secrets.
 */
export function compileMatcher(secrets: readonly Secret[]): Matcher {
  const patterns = secrets.flatMap(patternsOf);
  if (patterns.length === 0) return { find: () => [], openFrom: (text) => text.length };
  const width = Math.min(...patterns.map(({ seed }) => seed.length), 255);
  const shifts = new Uint8Array(TABLE).fill(width - BLOCK + 1);
  const buckets = new Map<number, Pattern[]>();
  for (const { seed, isTail, ...rest } of patterns) {
    // Secrets that start alike differ at the end of their seeds.
    const window = isTail ? 0 : seed.length - width;
    for (let at = 0; at <= width - BLOCK; at += 1) {
      const hash = hashAt(seed, window + at);
      shifts[hash] = Math.min(shifts[hash] ?? 0, width - BLOCK - at);
    }
    const last = hashAt(seed, window + width - BLOCK);
    buckets.set(last, [...(buckets.get(last) ?? []), { ...rest, seed, isTail, window }]);
  }
  return { find: (text) => search(text, { width, shifts, buckets }), openFrom: openEnds(patterns) };
}

function patternsOf({ name, value }: Secret): readonly Pattern[] {
  const forms = formsOf(value).map(({ text: form, revealing }): Pattern => {
    return { name, form, seed: form.slice(0, revealing), window: 0, isTail: false };
  });
  const tail = tailOf(value);
  if (tail === null) return forms;
  return [...forms, { name, form: value, seed: tail, window: 0, isTail: true }];
}

function hashAt(text: string, at: number): number {
  const [one, two, three] = [at, at + 1, at + 2].map((place) => text.charCodeAt(place));
  return hashOf(one ?? 0, two ?? 0, three ?? 0);
}

function hashOf(one: number, two: number, three: number): number {
  return (one * 7919 + two * 271 + three) & (TABLE - 1);
}

interface Tables {
  readonly width: number;
  readonly shifts: Uint8Array;
  readonly buckets: ReadonlyMap<number, readonly Pattern[]>;
}

function search(text: string, { width, shifts, buckets }: Tables): readonly Span[] {
  const found: Span[] = [];
  const end = text.length - BLOCK;
  let at = width - BLOCK;
  while (at <= end) {
    const hash = hashOf(text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2));
    const shift = shifts[hash] ?? 1;
    if (shift > 0) {
      at += shift;
      continue;
    }
    const span = longest(text, at - (width - BLOCK), buckets.get(hash) ?? []);
    if (span !== null) add(found, span);
    // A secret may begin inside this one and end after it.
    at = Math.max(at + 1, span === null ? 0 : span.to - BLOCK + 1);
  }
  return found;
}

function longest(text: string, at: number, patterns: readonly Pattern[]): Span | null {
  let best: Span | null = null;
  for (const pattern of patterns) {
    const start = at - pattern.window;
    if (start < 0 || !text.startsWith(pattern.seed, start)) continue;
    const span = extended(text, start, pattern);
    const more = best === null ? 1 : span.to - span.from - (best.to - best.from);
    // Of two matches with the same start, the complete one determines the name.
    if (more > 0 || (more === 0 && span.to - span.from === pattern.form.length)) best = span;
  }
  return best;
}

/** Returns the place of a seed, extended by the parts of its form around it. */
function extended(text: string, start: number, { form, seed, isTail, name }: Pattern): Span {
  if (isTail) {
    let from = start;
    let left = form.length - seed.length;
    while (from > 0 && left > 0 && text[from - 1] === form[left - 1]) {
      from -= 1;
      left -= 1;
    }
    return { from, to: start + seed.length, name };
  }
  let length = seed.length;
  while (length < form.length && text.charCodeAt(start + length) === form.charCodeAt(length)) {
    length += 1;
  }
  return { from: start, to: start + length, name };
}

/** Adds a span and merges it with earlier ones that it overlaps. */
function add(found: Span[], span: Span): void {
  let { from, to, name } = span;
  for (let last = found.at(-1); last !== undefined && last.to > from; last = found.at(-1)) {
    found.pop();
    if (last.to - last.from > span.to - span.from) name = last.name;
    from = Math.min(from, last.from);
    to = Math.max(to, last.to);
  }
  found.push({ from, to, name });
}

/** Finds open ends by the first three characters of the forms, and shorter ends by one or two. */
function openEnds(patterns: readonly Pattern[]): Matcher['openFrom'] {
  const forms = new Map<string, string[]>();
  const short = new Set<string>();
  let most = 0;
  for (const { form, isTail } of patterns) {
    if (isTail) continue;
    const key = form.slice(0, BLOCK);
    forms.set(key, [...(forms.get(key) ?? []), form]);
    short.add(form.slice(0, 1)).add(form.slice(0, 2));
    most = Math.max(most, form.length);
  }
  return (text) => {
    for (let at = Math.max(0, text.length - most); at < text.length; at += 1) {
      if (text.length - at < BLOCK) {
        if (short.has(text.slice(at))) return at;
        continue;
      }
      const known = forms.get(text.slice(at, at + BLOCK));
      if (known === undefined) continue;
      const end = text.slice(at);
      if (known.some((form) => form.length > end.length && form.startsWith(end))) return at;
    }
    return text.length;
  };
}
