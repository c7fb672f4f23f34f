/** The place of a secret in a text. */
export interface Span {
  readonly from: number;
  /** The offset after its last character. */
  to: number;
  name: string;
}

/** A form that is searched for by a seed; the rest of the form is matched around the seed. */
export interface Pattern {
  readonly name: string;
  readonly form: string;
  readonly seed: string;
  /** The offset of the seed in the form. */
  readonly at: number;
  /** How many characters of the form reveal the secret. */
  readonly least: number;
}

/** Patterns compiled for a search in one pass. */
export interface Tables {
  /** The length of the shortest seed. */
  readonly width: number;
  /** Characters per hashed block. */
  readonly block: number;
  /** How far the search may advance, by the hash of a block. */
  readonly shifts: Uint8Array;
  /** The patterns whose seeds end with a block, by its hash. */
  readonly buckets: ReadonlyMap<number, readonly Pattern[]>;
}

/** Characters per hashed block. */
const BLOCK = 3;
const MIN_BITS = 12;
const MAX_BITS = 20;
/** A table with so many places for each entry is mostly empty, so most shifts are long. */
const PLACES_PER_ENTRY = 8;

/**
 * Compiles patterns for a search in one pass (Wu and Manber): for each block of a few characters, a
 * table holds how far the search may advance. The time depends on the length of the text, not on
 * the number of patterns.
 */
export function tablesOf(patterns: readonly Pattern[], block = BLOCK): Tables {
  const width = Math.min(...patterns.map(({ seed }) => seed.length), 255);
  // Secrets that start alike differ at the end of their seeds.
  const windows = new Set(patterns.map(({ seed }) => seed.slice(-width)));
  const entries = windows.size * (width - block + 1) * PLACES_PER_ENTRY;
  const bits = Math.min(Math.max(Math.ceil(Math.log2(entries)), MIN_BITS), MAX_BITS);
  const shifts = new Uint8Array(1 << bits).fill(width - block + 1);
  for (const window of windows) {
    for (let offset = 0; offset <= width - block; offset += 1) {
      const hash = hashIn(window, offset, block) & (shifts.length - 1);
      shifts[hash] = Math.min(shifts[hash] ?? 0, width - block - offset);
    }
  }
  const buckets = new Map<number, Pattern[]>();
  for (const pattern of patterns) {
    const last = hashIn(pattern.seed, pattern.seed.length - block, block) & (shifts.length - 1);
    const bucket = buckets.get(last);
    if (bucket === undefined) buckets.set(last, [pattern]);
    else bucket.push(pattern);
  }
  return { width, block, shifts, buckets };
}

function hashIn(text: string, from: number, block: number): number {
  let hash = text.charCodeAt(from + block - 1);
  for (let at = from + block - 2; at >= from; at -= 1) hash = nextHash(hash, text.charCodeAt(at));
  return hash;
}

/** Returns the hash of a block and of the character before it; its last bits are used. */
export function nextHash(hash: number, code: number): number {
  return Math.imul(hash, 7919) ^ code;
}

/** Characters by their codes. */
export interface Codes {
  readonly codes: Uint16Array;
  readonly size: number;
}

/** Returns the places of all patterns, in order and without overlaps. */
export function search({ codes, size }: Codes, tables: Tables): Span[] {
  const { width, shifts, buckets } = tables;
  const mask = shifts.length - 1;
  const found: Span[] = [];
  let at = width - 1;
  while (at < size) {
    const hash = nextHash(nextHash(codes[at]!, codes[at - 1]!), codes[at - 2]!) & mask;
    const shift = shifts[hash]!;
    if (shift > 0) {
      at += shift;
      continue;
    }
    const span = longest({ codes, size }, at + 1, buckets.get(hash) ?? []);
    if (span !== null) addSpan(found, span);
    // A secret may begin inside this one and end after it.
    at = Math.max(at + 1, span === null ? 0 : span.to);
  }
  return found;
}

/** Returns the longest place of a pattern whose seed ends at an offset. */
function longest(text: Codes, end: number, patterns: readonly Pattern[]): Span | null {
  let best: Span | null = null;
  for (const pattern of patterns) {
    if (!endsWithSeed(text.codes, end, pattern.seed)) continue;
    const span = extended(text, end - pattern.seed.length, pattern);
    if (span.to - span.from < pattern.least) continue;
    const more = best === null ? 1 : span.to - span.from - (best.to - best.from);
    // Of two matches with the same start, the complete one determines the name.
    if (more > 0 || (more === 0 && span.to - span.from === pattern.form.length)) best = span;
  }
  return best;
}

function endsWithSeed(codes: Uint16Array, end: number, seed: string): boolean {
  const start = end - seed.length;
  if (start < 0) return false;
  for (let at = seed.length - 1; at >= 0; at -= 1) {
    if (codes[start + at] !== seed.charCodeAt(at)) return false;
  }
  return true;
}

/** Returns the place of a seed, extended by the parts of its form around it. */
function extended({ codes, size }: Codes, start: number, { form, seed, at, name }: Pattern): Span {
  let before = 0;
  while (
    before < at &&
    before < start &&
    codes[start - before - 1] === form.charCodeAt(at - before - 1)
  ) {
    before += 1;
  }
  let length = seed.length;
  while (
    at + length < form.length &&
    start + length < size &&
    codes[start + length] === form.charCodeAt(at + length)
  ) {
    length += 1;
  }
  return { from: start - before, to: start + length, name };
}

/** Adds a span and merges it with earlier ones that it overlaps. */
export function addSpan(found: Span[], span: Span): void {
  let { from, to, name } = span;
  for (let last = found.at(-1); last !== undefined && last.to > from; last = found.at(-1)) {
    found.pop();
    if (last.to - last.from > span.to - span.from) name = last.name;
    from = Math.min(from, last.from);
    to = Math.max(to, last.to);
  }
  found.push({ from, to, name });
}
