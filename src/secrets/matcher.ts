import { formsOf, hexFormsOf, tailOf, type Form, type Forms } from './forms.js';
import { compileOpenEnds } from './open-ends.js';
import { readDecimal, readEscapes, readHex, readPacked, survey, type Reading } from './readings.js';
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
  addSpan,
  search,
  tablesOf,
  type Codes,
  type Pattern,
  type Span,
  type Tables,
} from './search.js';
import type { Secret } from './values.js';

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
    ],
    HEX_BLOCK,
  );
  const numbers = { least: read.width, known: codesIn(forms.flatMap((each) => each.read)) };
  const reach = Math.max(...forms.flatMap(({ read: all }) => all.map((form) => form.text.length)));
  let openFrom: Matcher['openFrom'] | null = null;
  return {
    find(text) {
      const codes = codesOf(text);
      const found = search(codes, written);
      const has = (decoded: Codes): boolean => search(decoded, read).length > 0;
      const isPacked = isInPacked(codes, packed);
      const isHex = isInHex(codes, hex);
      const decimals = decimalPlaces(codes, numbers);
      const isDecimal = decimals.length > 0 && has(decimalCodes(codes, decimals));
      const isEscaped = hasEscapes(text) && has(escapeCodes(text, codes, reach));
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

/** Returns a table of the characters in forms, by their codes. */
function codesIn(forms: readonly Form[]): Uint8Array {
  const known = new Uint8Array(1 << 16);
  for (const { text } of forms) {
    for (let at = 0; at < text.length; at += 1) known[text.charCodeAt(at)] = 1;
  }
  return known;
}
