import { type Form, type Forms, type Secret, formsOf, hexFormsOf, tailOf } from './forms.js';
import { type Reading, readDecimal, readEscapes, readHex, readPacked, survey } from './readings.js';
import {
  codesOf,
  decimalCodes,
  decimalPlaces,
  escapeCodes,
  hasEscapes,
  isInHex,
  isInPacked,
} from './scan.js';
import {
  type Codes,
  type Pattern,
  type Span,
  type Tables,
  addSpan,
  search,
  tablesOf,
} from './search.js';

/** The end of a text is open if this many of its last characters are anywhere in a form. */
const GRAM = 4;
/** Five characters of base64 hold less than four of the secret. */
const PACKED_GRAM = 5;
/** Of a character in an encoding, such as an element of a list in indented JSON. */
const MAX_WRITTEN_CHARACTERS = 16;
const MAX_OPEN_CHARACTERS = 64 * 1024;
/** With so many bits for each group and hashes of it, one in 60,000 other groups looks the same. */
const BITS_PER_GRAM = 64;
const HASHES = 4;
const MAX_BITS = 1 << 27;

/** What an escape begins with. */
// oxlint-disable-next-line eslint/no-control-regex -- UTF-16 has characters of zero
const ESCAPE = /[\\%&\0]/;

/** The groups of characters of all forms, as a set of hashes. */
interface Grams {
  /** Characters of a group. */
  readonly width: number;
  readonly bits: Uint8Array;
  /** The length of the longest form. */
  readonly most: number;
  /** How often a form repeats a character, at most. */
  readonly longestRun: number;
  /** The first group of each form, if only the start of a form reveals it. */
  readonly first: ReadonlySet<string> | null;
}

/** The forms of which any part is secret, and those of which only the start is. */
type Searched = readonly [anywhere: Grams, fromStart: Grams];

/**
 * Compiles a search for the offset from which the end of a text may become a part of a secret in any
 * form: the start of the longest end whose every four or five characters are somewhere in a form.
 */
function compileOpenEnds(secrets: readonly Forms[]): (text: string) => number {
  const all = secrets.flatMap((each) => each.packed);
  // Base64 is looked for in the packed text alone.
  const inBase64 = new Set(all.map(({ text }) => text));
  const others = (forms: readonly Form[]): readonly Form[] =>
    forms.filter(({ text }) => !inBase64.has(text.replaceAll('-', '+').replaceAll('_', '/')));
  const written = searched(others(secrets.flatMap((each) => each.written)), GRAM);
  const read = searched(others(secrets.flatMap((each) => each.read)), GRAM);
  const packed = searched(all, PACKED_GRAM);
  const most = Math.max(...[...written, ...packed].map((grams) => grams.most));
  const reach = Math.min(most * MAX_WRITTEN_CHARACTERS + 256, MAX_OPEN_CHARACTERS);
  return (text) => {
    const cut = Math.max(0, text.length - reach);
    const end = text.slice(cut);
    const seen = survey(end);
    const last = seen.numbers.at(-1);
    const numbers = last?.[1] === end.length ? last : null;
    let open = openStart(end, written) ?? end.length;
    const look = ({ text: known, starts }: Reading, grams: Searched): void => {
      const at = openStart(known, grams);
      if (at !== null) open = Math.min(open, starts[at] ?? end.length);
    };
    if (openStart(seen.packed, packed) !== null) look(readPacked(end, seen), packed);
    if (ESCAPE.test(end)) look(readEscapes(end), read);
    if (numbers !== null) {
      look(readHex(end, [numbers]), read);
      look(readDecimal(end, [numbers], false), read);
    }
    return cut + open;
  };
}

function searched(forms: readonly Form[], width: number): Searched {
  const fromStart = forms.filter(({ block }) => block === 0);
  const first = new Set(fromStart.map(({ text }) => text.slice(0, width)));
  return [
    {
      ...gramsOf(
        forms.filter(({ block }) => block > 0),
        width,
      ),
      first: null,
    },
    { ...gramsOf(fromStart, width), first },
  ];
}

/** Returns where the end of a text may become a part of a secret; null if nowhere. */
function openStart(text: string, [anywhere, fromStart]: Searched): number | null {
  const one = chainStart(text, anywhere);
  const two = chainStart(text, fromStart);
  return one === null || two === null ? (one ?? two) : Math.min(one, two);
}

/** Returns where the longest end begins whose every group is in a form; null if there is none. */
function chainStart(text: string, grams: Grams): number | null {
  const end = text.length - grams.width + 1;
  const earliest = Math.max(0, text.length - grams.most);
  let at = end;
  let start = end;
  let run = 1;
  while (end + run < text.length && text[end + run] === text[end]) run += 1;
  while (at > earliest && has(grams, text, at - 1)) {
    at -= 1;
    // A long line of dashes is no part of a key, although keys in PEM files begin with some.
    run = text[at] === text[at + 1] ? run + 1 : 1;
    if (run > grams.longestRun) break;
    if (grams.first?.has(text.slice(at, at + grams.width)) !== false) start = at;
  }
  return start < end ? start : null;
}

function gramsOf(forms: readonly Form[], width: number): Omit<Grams, 'first'> {
  let count = 0;
  let most = 0;
  let run = 0;
  for (const { text } of forms) {
    count += text.length;
    most = Math.max(most, text.length);
    run = Math.max(run, longestRun(text));
  }
  let size = 1 << 16;
  while (size < count * BITS_PER_GRAM && size < MAX_BITS) size *= 2;
  const bits = new Uint8Array(size / 8);
  for (const { text } of forms) {
    for (let at = 0; at + width <= text.length; at += 1) {
      const [hash, step] = hashesAt(text, at, width);
      for (let index = 0; index < HASHES; index += 1) {
        const place = (hash + Math.imul(index, step)) & (size - 1);
        bits[place >> 3] = (bits[place >> 3] ?? 0) | (1 << (place & 7));
      }
    }
  }
  return { width, bits, most, longestRun: run };
}

/** Returns how often a text repeats one character in a row, at most. */
function longestRun(text: string): number {
  let longest = 0;
  let run = 0;
  for (let at = 0; at < text.length; at += 1) {
    run = text[at] === text[at - 1] ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

function has({ bits, width }: Grams, text: string, at: number): boolean {
  const [hash, step] = hashesAt(text, at, width);
  for (let index = 0; index < HASHES; index += 1) {
    const place = (hash + Math.imul(index, step)) & (bits.length * 8 - 1);
    if (((bits[place >> 3] ?? 0) & (1 << (place & 7))) === 0) return false;
  }
  return true;
}

function hashesAt(text: string, from: number, width: number): readonly [number, number] {
  let one = 0;
  let two = 1;
  for (let at = from; at < from + width; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x9e_37_79_b1);
    one ^= one >>> 15;
    two = Math.imul(two ^ code, 0x85_eb_ca_6b);
    two ^= two >>> 13;
  }
  return [one, two | 1];
}

/** Digits say less than characters do. */
const HEX_BLOCK = 6;

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
 * Compiles secrets for a search. The text is searched as it is written, and as its encodings are
 * read.
 */
export function compileMatcher(secrets: readonly Secret[]): Matcher {
  if (secrets.length === 0) return { find: () => [], openFrom: (text) => text.length };
  const forms = secrets.map(({ name, value }) => ({ name, value, ...formsOf(value) }));
  const compiled = (kind: keyof Forms, hasTails: boolean): Tables =>
    tablesOf(
      forms.flatMap(({ name, value, ...kinds }) => [
        ...patternsOf(name, kinds[kind]),
        ...(hasTails ? tailPatterns(name, value) : []),
      ]),
    );
  const written = compiled('written', true);
  const read = compiled('read', true);
  const packed = compiled('packed', false);
  const hex = tablesOf(
    [
      ...forms.flatMap(({ name, hex: all }) => patternsOf(name, all)),
      ...forms.flatMap(({ name, value }) => tailPatterns(name, value).flatMap(hexPatterns)),
    ].map(withoutLastZeros),
    HEX_BLOCK,
  );
  const numbers = { least: read.width, known: codesIn(forms.flatMap((each) => each.read)) };
  const reach = Math.max(...forms.flatMap(({ read: all }) => all.map((form) => form.text.length)));
  let openFrom: Matcher['openFrom'] | null = null;
  return {
    find(text) {
      const codes = codesOf(text);
      const found = search(codes, written);
      const holds = (decoded: Codes): boolean => search(decoded, read).length > 0;
      const isPacked = isInPacked(codes, packed);
      const isHex = isInHex(codes, hex);
      const decimals = decimalPlaces(codes, numbers);
      const isDecimal = decimals.length > 0 && holds(decimalCodes(codes, decimals));
      const isEscaped = hasEscapes(text) && holds(escapeCodes(text, codes, reach));
      if (!(isPacked || isHex || isDecimal || isEscaped)) return found;
      // What is found so quickly has no places yet.
      const places = isHex || isDecimal ? survey(text).numbers : [];
      return joined([
        ...found,
        ...(isPacked ? placesOf(readPacked(text), packed) : []),
        ...(isHex ? placesOf(readHex(text, places), read) : []),
        ...(isDecimal ? placesOf(readDecimal(text, places, true), read) : []),
        ...(isEscaped ? placesOf(readEscapes(text), read) : []),
      ]);
    },
    openFrom(text) {
      openFrom ??= compileOpenEnds(forms);
      return openFrom(text);
    },
  };
}

/** Searches a reading, and returns where in the text the secrets are. */
function placesOf({ text, starts, ends }: Reading, tables: Tables): Span[] {
  return search(codesOf(text), tables).map(({ from, to, name }) => ({
    from: starts[from] ?? 0,
    to: ends[to - 1] ?? 0,
    name,
  }));
}

/** Orders spans, and merges those that overlap. */
function joined(spans: readonly Span[]): readonly Span[] {
  const all: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) addSpan(all, span);
  return all;
}

function patternsOf(name: string, forms: readonly Form[]): readonly Pattern[] {
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

function tailPatterns(name: string, value: string): readonly Pattern[] {
  const seed = tailOf(value);
  if (seed === null) return [];
  return [{ name, form: value, seed, at: value.length - seed.length, least: seed.length }];
}

function hexPatterns(pattern: Pattern): readonly Pattern[] {
  return hexFormsOf(pattern.seed).map((seed) => ({ ...pattern, form: seed, seed, at: 0 }));
}

/**
 * Shortens a seed to its last digit that is not zero. Wide characters end with zeros, and in a text of zeros,
 * such as a list of numbers, each place would otherwise be compared with the seeds of all secrets.
 */
function withoutLastZeros(pattern: Pattern): Pattern {
  const { seed } = pattern;
  let end = seed.length;
  while (end > HEX_BLOCK && seed[end - 1] === '0') end -= 1;
  return { ...pattern, seed: seed.slice(0, end) };
}

/** Returns a table of the characters in forms, by their codes. */
function codesIn(forms: readonly Form[]): Uint8Array {
  const known = new Uint8Array(1 << 16);
  for (const { text } of forms) {
    for (let at = 0; at < text.length; at += 1) known[text.charCodeAt(at)] = 1;
  }
  return known;
}
