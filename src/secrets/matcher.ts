import { formsOf, tailOf } from './forms.js';
import type { Secret } from './values.js';

/** Where a secret stands in a text. */
export interface Span {
  readonly from: number;
  /** The first character behind it. */
  to: number;
  name: string;
}

export interface Matcher {
  /** Returns the places of all secrets in a text, in order, none overlapping another. */
  find(text: string): readonly Span[];
  /** Returns from where on the end of a text may be the beginning of a secret; its length where it is not. */
  openFrom(text: string): number;
}

/** What is searched for. `seed` gives a form away; the rest of the form is matched around it. */
interface Pattern {
  readonly name: string;
  readonly form: string;
  readonly seed: string;
  /** Where the window begins within the seed. */
  readonly window: number;
  /** The seed is the end of the form, not its beginning. */
  readonly isTail: boolean;
}

/** Characters of which a block is hashed. */
const BLOCK = 3;
const TABLE = 1 << 16;

/**
 * Compiles secrets for a search in one pass (Wu and Manber): a table says for each block of three
 * characters how far the search may move on. Its time does not depend on the number of secrets, and
 * grows with the length of the text alone.
 */
export function compileMatcher(secrets: readonly Secret[]): Matcher {
  const patterns = secrets.flatMap(patternsOf);
  if (patterns.length === 0) return { find: () => [], openFrom: (text) => text.length };
  const width = Math.min(...patterns.map(({ seed }) => seed.length), 255);
  const shifts = new Uint8Array(TABLE).fill(width - BLOCK + 1);
  const buckets = new Map<number, Pattern[]>();
  for (const { seed, isTail, ...rest } of patterns) {
    // The end of a seed tells secrets apart that begin alike.
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
  const forms = formsOf(value).map(({ text: form, telling }): Pattern => {
    return { name, form, seed: form.slice(0, telling), window: 0, isTail: false };
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
    // What begins within a secret may reach beyond it.
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
    // Of two that begin alike, the one that stands there whole gives the name.
    if (more > 0 || (more === 0 && span.to - span.from === pattern.form.length)) best = span;
  }
  return best;
}

/** A seed with what stands around it of its form. */
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

/** Adds a span; one that overlaps earlier ones swallows them. */
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

/** By their first three characters, and for shorter ends by one and two. */
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
