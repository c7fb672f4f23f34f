import { formsOf, tailOf, type Form } from './forms.js';
import { compileOpenEnds } from './open-ends.js';
import { readingsOf, readPacked, survey, type Reading } from './readings.js';
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

/** A form that is searched for by a seed; the rest of the form is matched around the seed. */
interface Pattern {
  readonly name: string;
  readonly form: string;
  readonly seed: string;
  /** The offset of the seed in the form. */
  readonly at: number;
  /** The offset of the search window in the seed. */
  readonly window: number;
  /** How many characters of the form reveal the secret. */
  readonly least: number;
}

/** Characters per hashed block. */
const BLOCK = 3;
const TABLE = 1 << 16;

/**
 * Compiles secrets for a search in one pass (Wu and Manber): for each block of three characters, a
 * table holds how far the search may advance. The time depends on the length of the text, not on
 * the number of secrets. The text is searched as it is written, and as its encodings are read.
 */
export function compileMatcher(secrets: readonly Secret[]): Matcher {
  if (secrets.length === 0) return { find: () => [], openFrom: (text) => text.length };
  const forms = secrets.map(({ name, value }) => ({ name, value, ...formsOf(value) }));
  const written = tablesOf(
    forms.flatMap(({ name, value, written: all }) => [
      ...patternsOf(name, all),
      ...tailPatterns(name, value),
    ]),
  );
  const read = tablesOf(
    forms.flatMap(({ name, value, read: all }) => [
      ...patternsOf(name, all),
      ...tailPatterns(name, value),
    ]),
  );
  const packed = tablesOf(forms.flatMap(({ name, packed: all }) => patternsOf(name, all)));
  let openFrom: Matcher['openFrom'] | null = null;
  return {
    find(text) {
      const found = search(text, written);
      const seen = survey(text);
      const inPacked = search(seen.packed, packed);
      const places = inPacked.length === 0 ? [] : placesOf(inPacked, readPacked(text, seen.packed));
      for (const reading of readingsOf(text, seen)) {
        places.push(...placesOf(search(reading.text, read), reading));
      }
      return places.length === 0 ? found : joined([...found, ...places]);
    },
    openFrom(text) {
      openFrom ??= compileOpenEnds(forms);
      return openFrom(text);
    },
  };
}

/** Returns where in the text the secrets of a reading are. */
function placesOf(spans: readonly Span[], { starts, ends }: Reading): Span[] {
  return spans.map(({ from, to, name }) => ({
    from: starts[from] ?? 0,
    to: ends[to - 1] ?? 0,
    name,
  }));
}

/** Orders spans, and merges those that overlap. */
function joined(spans: readonly Span[]): readonly Span[] {
  const all: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) add(all, span);
  return all;
}

function tablesOf(patterns: readonly Omit<Pattern, 'window'>[]): Tables {
  const width = Math.min(...patterns.map(({ seed }) => seed.length), 255);
  const shifts = new Uint8Array(TABLE).fill(width - BLOCK + 1);
  const buckets = new Map<number, Pattern[]>();
  for (const { seed, at, ...rest } of patterns) {
    // Secrets that start alike differ at the end of their seeds.
    const window = seed.length - width;
    for (let offset = 0; offset <= width - BLOCK; offset += 1) {
      const hash = hashAt(seed, window + offset);
      shifts[hash] = Math.min(shifts[hash] ?? 0, width - BLOCK - offset);
    }
    const last = hashAt(seed, window + width - BLOCK);
    const bucket = buckets.get(last);
    if (bucket === undefined) buckets.set(last, [{ ...rest, seed, at, window }]);
    else bucket.push({ ...rest, seed, at, window });
  }
  return { width, shifts, buckets };
}

function patternsOf(name: string, forms: readonly Form[]): readonly Omit<Pattern, 'window'>[] {
  return forms.flatMap(({ text: form, revealing, block, from }) => {
    const all = [{ name, form, seed: form.slice(0, revealing), at: 0, least: revealing }];
    if (block === 0) return all;
    // Not sooner than the start is recognized, which may be within a longer secret.
    for (let at = from > 0 ? from : block; at + block <= form.length; at += block) {
      all.push({ name, form, seed: form.slice(at, at + block), at, least: 2 * block });
    }
    return all;
  });
}

function tailPatterns(name: string, value: string): readonly Omit<Pattern, 'window'>[] {
  const seed = tailOf(value);
  if (seed === null) return [];
  return [{ name, form: value, seed, at: value.length - seed.length, least: seed.length }];
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
    if (span.to - span.from < pattern.least) continue;
    const more = best === null ? 1 : span.to - span.from - (best.to - best.from);
    // Of two matches with the same start, the complete one determines the name.
    if (more > 0 || (more === 0 && span.to - span.from === pattern.form.length)) best = span;
  }
  return best;
}

/** Returns the place of a seed, extended by the parts of its form around it. */
function extended(text: string, start: number, { form, seed, at, name }: Pattern): Span {
  let before = 0;
  while (
    before < at &&
    before < start &&
    text.charCodeAt(start - before - 1) === form.charCodeAt(at - before - 1)
  ) {
    before += 1;
  }
  let length = seed.length;
  while (
    at + length < form.length &&
    text.charCodeAt(start + length) === form.charCodeAt(at + length)
  ) {
    length += 1;
  }
  return { from: start - before, to: start + length, name };
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
