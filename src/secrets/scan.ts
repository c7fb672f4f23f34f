import { BREAK, classOf, ESCAPE, escapeAt, hexValue, OTHER, type Place } from './readings.js';
import { nextHash, type Codes, type Tables } from './search.js';

/** Reused: most texts are short, and memory costs more than reading them. */
let given = new Uint16Array(0);
let decoded = new Uint16Array(0);
const MAX_KEPT = 1 << 22;

const CODES = 1 << 16;
const BACKSLASH = 92;
const ZERO = 48;
const NINE = 57;
const CLASSES = Uint8Array.from({ length: CODES }, (_, code) => classOf(code));

/** Returns the codes of a text, with a zero behind them. They are valid until the next call. */
export function codesOf(text: string): Codes {
  const size = text.length;
  if (given.length <= size) given = new Uint16Array(Math.max(size * 2, 4_096));
  const codes = given;
  Buffer.from(codes.buffer).write(text, 'utf16le');
  codes[size] = 0;
  if (given.length > MAX_KEPT) given = new Uint16Array(0);
  return { codes, size };
}

/** How a reading that leaves characters out sees each of them, by its code. */
interface Sieve {
  /** The character in the reading, or `BARRIER`. */
  readonly symbols: Uint8Array;
  readonly kinds: Uint8Array;
}

/** Stands for a character that no form has. */
const BARRIER = 1;
const KEPT = 0;
const LEFT_OUT = 1;
/** Left out behind a backslash, as in `\n`. */
const BLANK_LETTER = 2;
/** Left out if it begins a number such as `0x73`. */
const FIRST_ZERO = 5;

function sieveOf(symbolOf: (mark: string, code: number) => string | null): Sieve {
  const symbols = new Uint8Array(CODES).fill(BARRIER);
  const kinds = new Uint8Array(CODES);
  for (let code = 0; code < 128; code += 1) {
    const symbol = symbolOf(String.fromCharCode(code), code);
    if (symbol === null) kinds[code] = LEFT_OUT;
    else symbols[code] = symbol.charCodeAt(0) || BARRIER;
  }
  for (const letter of 'nrt') kinds[letter.charCodeAt(0)] = BLANK_LETTER;
  return { symbols, kinds };
}

/** Without line breaks and blanks, in the alphabet of base64. */
const PACKED = sieveOf((mark, code) => {
  if (code === BACKSLASH || (code > 0 && code <= 32)) return null;
  return mark === '-' ? '+' : mark === '_' ? '/' : /[a-z\d+/]/i.test(mark) ? mark : '';
});
/** Only hexadecimal digits, without separators. */
const HEX = sieveOf((mark, code) => {
  if (hexValue(code) >= 0) return mark.toLowerCase();
  return classOf(code) === OTHER ? '' : null;
});
HEX.kinds[ZERO] = FIRST_ZERO;

function isLeftOut(codes: Uint16Array, at: number, kinds: Uint8Array): boolean {
  const kind = kinds[codes[at]!]!;
  if (kind === KEPT) return false;
  if (kind === LEFT_OUT) return true;
  if (kind === BLANK_LETTER) return at > 0 && codes[at - 1] === BACKSLASH;
  if ((codes[at + 1]! | 32) !== 120) return false;
  // Digits are read in pairs: it begins a number only if it is not the second of a pair.
  let from = at;
  while (from > 0 && hexValue(codes[from - 1]!) >= 0) from -= 1;
  return (at - from) % 2 === 0;
}

/** Returns the place of the character before in the reading; negative if there is none. */
function placeBefore(codes: Uint16Array, at: number, kinds: Uint8Array): number {
  let place = at - 1;
  while (place >= 0 && isLeftOut(codes, place, kinds)) place -= 1;
  return place;
}

/** Returns whether the text without line breaks and blanks contains a seed. */
export function isInPacked(text: Codes, tables: Tables): boolean {
  return isIn(text, tables, PACKED);
}

/** Returns whether the hexadecimal digits of the text contain a seed. */
export function isInHex(text: Codes, tables: Tables): boolean {
  return isIn(text, tables, HEX);
}

/** Searches like `search`, but passes over what is left out, so that no other text is made. */
function isIn(text: Codes, { width, block, shifts, buckets }: Tables, sieve: Sieve): boolean {
  const { codes, size } = text;
  const { symbols, kinds } = sieve;
  const mask = shifts.length - 1;
  let at = width - 1;
  while (at < size) {
    const code = codes[at]!;
    if (kinds[code] !== KEPT && isLeftOut(codes, at, kinds)) {
      at += 1;
      continue;
    }
    let hash = symbols[code]!;
    if (hash === BARRIER) {
      at += width;
      continue;
    }
    let place = at;
    let count = 1;
    for (; count < block; count += 1) {
      place -= 1;
      let one = codes[place]!;
      while (kinds[one] !== KEPT && place > 0 && isLeftOut(codes, place, kinds)) {
        place -= 1;
        one = codes[place]!;
      }
      const before = symbols[one]!;
      if (before === BARRIER || place === 0) break;
      hash = nextHash(hash, before);
    }
    if (count < block) {
      at = Math.max(at + 1, place + width);
      continue;
    }
    const shift = shifts[hash & mask]!;
    if (shift > 0) {
      at += shift;
      continue;
    }
    for (const { seed } of buckets.get(hash & mask) ?? []) {
      if (endsWithSeed(codes, at, { seed, symbols, kinds })) return true;
    }
    at += 1;
  }
  return false;
}

function endsWithSeed(
  codes: Uint16Array,
  end: number,
  { seed, symbols, kinds }: Sieve & { readonly seed: string },
): boolean {
  let place = end;
  for (let at = seed.length - 1; at >= 0; at -= 1) {
    if (place < 0 || symbols[codes[place]!] !== seed.charCodeAt(at)) return false;
    place = placeBefore(codes, place, kinds);
  }
  return true;
}

const IS_BETWEEN = Uint8Array.from({ length: CODES }, (_, code) => {
  return Number(classOf(code) !== OTHER && !/[a-z]/i.test(String.fromCharCode(code)));
});

/** What numbers in decimal digits may be. */
interface Numbers {
  /** How many of them are a secret, at least. */
  readonly least: number;
  /** By code: whether it is in a form. */
  readonly known: Uint8Array;
}

const NO_NUMBER = 0;
const SKIPPED = 1;
const KNOWN = 2;

/**
 * Returns the places where enough numbers follow each other that are characters of forms. It looks
 * at one number in the length that so many numbers have, and at others only if it is one.
 */
export function decimalPlaces({ codes, size }: Codes, { least, known }: Numbers): Place[] {
  const places: Place[] = [];
  /** A digit and a separator for each, apart from the last separator. */
  const span = 2 * least - 1;
  let from = 0;
  while (from + span <= size) {
    const at = nextDigit(codes, from + span - 1, size);
    if (!isDigit(codes[at]!)) {
      from = at + 1;
      continue;
    }
    let begin = at;
    while (begin > from && isDigit(codes[begin - 1]!)) begin -= 1;
    let end = numberEnd(codes, at);
    const kind = kindOf(codes, begin, end, known);
    if (kind === NO_NUMBER) {
      from = end;
      continue;
    }
    let count = kind === KNOWN ? 1 : 0;
    let first = begin;
    for (;;) {
      const last = digitBefore(codes, first, from);
      if (last < 0) break;
      let start = last;
      while (start > from && isDigit(codes[start - 1]!)) start -= 1;
      const one = kindOf(codes, start, last + 1, known);
      if (one === NO_NUMBER) break;
      if (one === KNOWN) count += 1;
      first = start;
    }
    for (;;) {
      const next = nextDigit(codes, end, size);
      if (!isDigit(codes[next]!)) break;
      const stop = numberEnd(codes, next);
      const one = kindOf(codes, next, stop, known);
      if (one === NO_NUMBER) break;
      if (one === KNOWN) count += 1;
      end = stop;
    }
    if (count >= least) places.push([first, end]);
    from = end;
  }
  return places;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Whether a character is no digit, and cannot stand between numbers either. */
function isOther(codes: Uint16Array, at: number): boolean {
  const code = codes[at]!;
  if (IS_BETWEEN[code] === 1) return false;
  return HEX.kinds[code] !== BLANK_LETTER || at === 0 || codes[at - 1] !== BACKSLASH;
}

/** Returns the place of the next digit, or of a character that ends a list of numbers. */
function nextDigit(codes: Uint16Array, from: number, size: number): number {
  let at = from;
  while (at < size && !isDigit(codes[at]!) && !isOther(codes, at)) at += 1;
  return at;
}

/** Returns the place of the last digit before a place, in the same list; negative if there is none. */
function digitBefore(codes: Uint16Array, before: number, from: number): number {
  let at = before - 1;
  while (at >= from && !isDigit(codes[at]!)) {
    if (isOther(codes, at)) return -1;
    at -= 1;
  }
  return at >= from ? at : -1;
}

function numberEnd(codes: Uint16Array, from: number): number {
  let at = from + 1;
  while (isDigit(codes[at]!)) at += 1;
  return at;
}

function kindOf(codes: Uint16Array, from: number, end: number, known: Uint8Array): number {
  let value = 0;
  for (let at = from; at < end; at += 1) {
    value = Math.min(value * 10 + codes[at]! - ZERO, BREAK);
  }
  if (known[value] === 1) return KNOWN;
  return value === 0 || isName(codes, end) ? SKIPPED : NO_NUMBER;
}

/** How many backslashes and blanks may stand before the colon after a name. */
const MAX_BEFORE_COLON = 16;

/** Whether a number before a place is the name of a field. */
function isName(codes: Uint16Array, from: number): boolean {
  let isQuoted = false;
  for (let at = from; at < from + MAX_BEFORE_COLON; at += 1) {
    const mark = codes[at];
    if (mark === 58) return isQuoted;
    if (mark === 34) isQuoted = true;
    else if (mark !== BACKSLASH && mark !== 32) return false;
  }
  return false;
}

/**
 * Returns the characters that `readDecimal` reads in places. They are valid until the next reading.
 */
export function decimalCodes({ codes }: Codes, places: readonly Place[]): Codes {
  const out = space(places.reduce((sum, [from, to]) => sum + to - from + 1, 0));
  let count = 0;
  for (const [from, to] of places) {
    for (let at = from; at < to; at += 1) {
      if (!isDigit(codes[at]!)) continue;
      let value = 0;
      for (; at < to && isDigit(codes[at]!); at += 1) {
        value = Math.min(value * 10 + codes[at]! - ZERO, BREAK);
      }
      if (value === 0 || isName(codes, at)) continue;
      out[count] = value;
      count += 1;
    }
    out[count] = BREAK;
    count += 1;
  }
  return { codes: out, size: count };
}

function space(size: number): Uint16Array {
  if (decoded.length < size) decoded = new Uint16Array(Math.max(size * 2, 4_096));
  const out = decoded;
  if (decoded.length > MAX_KEPT) decoded = new Uint16Array(0);
  return out;
}

/**
 * Returns the characters that `readEscapes` reads, as far as they are near an escape: within `reach`
 * characters, which is the length of the longest form. They are valid until the next reading.
 */
export function escapeCodes(text: string, { codes, size }: Codes, reach: number): Codes {
  // Each stretch begins with a break.
  const out = space(size * 2);
  let count = 0;
  let end = 0;
  let read = 0;
  for (let at = 0; at < size;) {
    if (at >= end) {
      while (at < size && CLASSES[codes[at]!] !== ESCAPE) at += 1;
      if (at === size) break;
      out[count] = BREAK;
      count += 1;
      for (let place = Math.max(read, at - reach); place < at; place += 1) {
        out[count] = codes[place]!;
        count += 1;
      }
    }
    const code = codes[at]!;
    read = at + 1;
    let value = code;
    if (CLASSES[code] === ESCAPE) {
      [value, read] = escapeAt(text, at, code) ?? [code, read];
      end = read + reach;
    }
    out[count] = value;
    if (value > 0) count += 1;
    at = read;
  }
  return { codes: out, size: count };
}

/** Returns whether a text has an escape such as `\u0073`, `%73`, or `&#115;`, or a zero. */
export function hasEscapes(text: string): boolean {
  return (
    text.includes('\0') ||
    hasBefore(text, '%', (next) => hexValue(next) >= 0) ||
    hasBefore(text, '&', (next) => next === 35 || next > 96) ||
    hasBefore(text, '\\', (next) => next === 117 || next === 120)
  );
}

function hasBefore(text: string, mark: string, isNext: (code: number) => boolean): boolean {
  let at = text.indexOf(mark);
  while (at !== -1 && !isNext(text.charCodeAt(at + 1))) at = text.indexOf(mark, at + 1);
  return at !== -1;
}
