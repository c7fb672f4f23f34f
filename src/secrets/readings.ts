/** What a text says when its encodings are read, and where in the text each character comes from. */
export interface Reading {
  readonly text: string;
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
}

/** The offsets of a part of a text: its first character, and the one after its last. */
export type Place = readonly [from: number, to: number];

/** What one pass over a text finds out about its encodings. */
interface Survey {
  /** The places where only numbers and separators stand. */
  readonly numbers: readonly Place[];
  /** The text without line breaks and blanks, in the alphabet of base64. */
  readonly packed: string;
}

/** Stands for what cannot be a part of a secret. */
export const BREAK = 0xff_ff;
export const OTHER = 0;
const DIGIT = 1;
const SEPARATOR = 2;
export const ESCAPE = 3;
const BLANK = 4;

/** The class of each character below 128. */
const CLASSES = new Uint8Array(128);
for (const mark of '0123456789abcdefABCDEF') CLASSES[mark.charCodeAt(0)] = DIGIT;
for (const mark of ':,;-_."\'[](){}|xX') CLASSES[mark.charCodeAt(0)] = SEPARATOR;
for (const mark of '%&\\\0') CLASSES[mark.charCodeAt(0)] = ESCAPE;
for (let code = 1; code <= 32; code += 1) CLASSES[code] = BLANK;

/** Returns the class of a character. */
export function classOf(code: number): number {
  return code < 128 ? CLASSES[code]! : OTHER;
}

/** The letters of escapes in JSON for blanks; they are no part of base64. */
const BLANK_LETTERS = new Set(Array.from('nrt', (letter) => letter.charCodeAt(0)));
const BACKSLASH = 92;

/** A shorter stretch cannot hold a secret in numbers: six have at least twelve digits. */
const MIN_DIGITS = 12;

/** Reused: most texts are short, and memory costs more than reading them. */
let space = Buffer.alloc(0);
let codes = new Uint16Array(0);
let starts = new Uint32Array(0);
let ends = new Uint32Array(0);
const MAX_KEPT = 1 << 22;

/** Looks at each character of a text once. */
export function survey(text: string): Survey {
  const { length } = text;
  if (space.length < length) space = Buffer.alloc(length * 2);
  const packed = space;
  const numbers: Place[] = [];
  let size = 0;
  let from = 0;
  let digits = 0;
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? CLASSES[code] : OTHER;
    if (kind === BLANK) continue;
    if (kind === DIGIT) digits += 1;
    else if (kind === OTHER) {
      if (digits >= MIN_DIGITS) numbers.push([from, at]);
      digits = 0;
      from = at + 1;
    } else if (kind === ESCAPE) {
      if (code === BACKSLASH) {
        if (BLANK_LETTERS.has(text.charCodeAt(at + 1))) at += 1;
        continue;
      }
    }
    packed[size] = code < 128 ? ALPHABET[code]! : 0;
    size += 1;
  }
  if (digits >= MIN_DIGITS) numbers.push([from, length]);
  const result = { numbers, packed: packed.toString('latin1', 0, size) };
  if (space.length > MAX_KEPT) space = Buffer.alloc(0);
  return result;
}

/** The alphabet for URLs is read as the ordinary one. */
const ALPHABET = Uint8Array.from({ length: 128 }, (_, code) => code);
ALPHABET['-'.charCodeAt(0)] = '+'.charCodeAt(0);
ALPHABET['_'.charCodeAt(0)] = '/'.charCodeAt(0);

/** Reads a text without line breaks and blanks, in the alphabet of base64. */
export function readPacked(text: string, { packed } = survey(text)): Reading {
  const places: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code <= 32 && code > 0) continue;
    if (code === BACKSLASH) {
      if (BLANK_LETTERS.has(text.charCodeAt(at + 1))) at += 1;
      continue;
    }
    places.push(at);
  }
  return { text: packed, starts: places, ends: places.map((at) => at + 1) };
}

/** Collects the characters of a reading. They are kept until the next reading begins. */
class Characters {
  private size = 0;

  constructor(most: number) {
    if (codes.length >= most) return;
    codes = new Uint16Array(most * 2);
    starts = new Uint32Array(most * 2);
    ends = new Uint32Array(most * 2);
  }

  /** Adds a character; characters of zero are the other halves of UTF-16. */
  add(code: number, start: number, end: number): void {
    if (code === 0) return;
    codes[this.size] = code;
    starts[this.size] = start;
    ends[this.size] = end;
    this.size += 1;
  }

  reading(): Reading {
    const text = Buffer.from(codes.buffer, 0, this.size * 2).toString('utf16le');
    const result = { text, starts, ends };
    if (codes.length > MAX_KEPT) {
      codes = new Uint16Array(0);
      starts = ends = new Uint32Array(0);
    }
    return result;
  }
}

/**
 * Reads bytes in hexadecimal digits, with or without separators. An unfinished byte at the end of the
 * text is left out.
 */
export function readHex(text: string, places: readonly Place[]): Reading {
  const read = new Characters(text.length);
  for (const place of places) readBytes(text, place, read);
  return read.reading();
}

function readBytes(text: string, [from, to]: Place, read: Characters): void {
  for (let at = from; at < to; at += 1) {
    const high = hexValue(text.charCodeAt(at));
    if (high < 0) continue;
    const next = text.charCodeAt(at + 1);
    const low = at + 1 < to ? hexValue(next) : -1;
    if (low >= 0) read.add(high * 16 + low, at, at + 2);
    else if (at + 1 < text.length && !(high === 0 && (next | 32) === 120)) {
      read.add(BREAK, at, at + 1);
    }
    if (low >= 0) at += 1;
  }
  if (to < text.length) read.add(BREAK, to, to);
}

/**
 * Reads a list of numbers in decimal digits: bytes or characters. Names of fields (`"0":115`) are
 * skipped, and so is a number at the end of the text unless the text `isWhole`.
 */
export function readDecimal(text: string, places: readonly Place[], isWhole: boolean): Reading {
  const read = new Characters(text.length);
  for (const [from, to] of places) {
    readNumbers(text, [from, to], { read, isWhole });
    if (to < text.length) read.add(BREAK, to, to);
  }
  return read.reading();
}

function readNumbers(
  text: string,
  [from, to]: Place,
  { read, isWhole }: { readonly read: Characters; readonly isWhole: boolean },
): void {
  for (let at = from; at < to; at += 1) {
    let end = at;
    let value = 0;
    for (let digit = digitAt(text, end); end < to && digit >= 0; digit = digitAt(text, end)) {
      value = Math.min(value * 10 + digit, BREAK);
      end += 1;
    }
    if (end === at) continue;
    if (!isOpenOrName(text, end, isWhole)) read.add(value, at, end);
    at = end;
  }
}

function digitAt(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48;
  return value >= 0 && value <= 9 ? value : -1;
}

/** How many backslashes and blanks may stand before the colon after a name. */
const MAX_BEFORE_COLON = 16;

/** Returns whether a number is the name of a field, or may become one or a longer number. */
function isOpenOrName(text: string, from: number, isWhole: boolean): boolean {
  let isQuoted = false;
  for (let at = from; at < from + MAX_BEFORE_COLON; at += 1) {
    const mark = text[at];
    if (mark === undefined) return !isWhole;
    if (mark === ':') return isQuoted;
    if (mark === '"') isQuoted = true;
    else if (mark !== '\\' && mark !== ' ') return false;
  }
  return false;
}

const NAMED: Readonly<Record<string, number>> = { amp: 38, lt: 60, gt: 62, quot: 34, apos: 39 };
/** The longest entity that is read. */
const MAX_ENTITY_CHARACTERS = 12;

/**
 * Reads escapes: `\u0073`, `\x73`, `%73`, `&#115;`, `&#x73;`, and `&amp;`. Backslashes and characters
 * of zero are left out, and so is an unfinished escape at the end of the text.
 */
export function readEscapes(text: string): Reading {
  const read = new Characters(text.length);
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const escape = code < 128 && CLASSES[code] === ESCAPE ? escapeAt(text, at, code) : null;
    if (escape === null) read.add(code, at, at + 1);
    else {
      const [value, end] = escape;
      read.add(value, at, end);
      at = end - 1;
    }
  }
  return read.reading();
}

/** Returns the character of an escape and where it ends; null if there is none. */
export function escapeAt(text: string, at: number, code: number): readonly [number, number] | null {
  if (code === 0) return [0, at + 1];
  if (code === 37) return hexEscape(text, at + 1, 2);
  if (code === BACKSLASH) return backslashAt(text, at);
  const rest = text.slice(at + 1, at + MAX_ENTITY_CHARACTERS);
  const end = rest.indexOf(';');
  if (end === -1) {
    const isOpen = at + MAX_ENTITY_CHARACTERS > text.length && /^#?\w*$/.test(rest);
    return isOpen ? [0, text.length] : null;
  }
  const name = rest.slice(0, end);
  const [, hex, decimal] = /^#(?:x([\da-f]+)|(\d+))$/i.exec(name) ?? [];
  const value =
    hex === undefined
      ? decimal === undefined
        ? Object.hasOwn(NAMED, name)
          ? NAMED[name]
          : undefined
        : Number(decimal)
      : Number.parseInt(hex, 16);
  return value === undefined ? null : [Math.min(value, BREAK), at + end + 2];
}

function backslashAt(text: string, at: number): readonly [number, number] {
  const kind = text[at + 1];
  const none = [0, at + 1] as const;
  if (kind === 'x') return hexEscape(text, at + 2, 2) ?? none;
  if (kind !== 'u') return none;
  if (text[at + 2] !== '{') return hexEscape(text, at + 2, 4) ?? none;
  const rest = text.slice(at + 3, at + 3 + MAX_ENTITY_CHARACTERS);
  const end = rest.indexOf('}');
  if (end === -1) return at + 3 + MAX_ENTITY_CHARACTERS > text.length ? [0, text.length] : none;
  const value = Number.parseInt(rest.slice(0, end), 16);
  return Number.isNaN(value) ? none : [Math.min(value, BREAK), at + end + 4];
}

/** Reads hexadecimal digits; an unfinished number at the end of the text is zero. */
function hexEscape(text: string, from: number, count: number): readonly [number, number] | null {
  let value = 0;
  for (let at = from; at < from + count; at += 1) {
    if (at >= text.length) return [0, text.length];
    const digit = hexValue(text.charCodeAt(at));
    if (digit < 0) return null;
    value = value * 16 + digit;
  }
  return [value, from + count];
}

export function hexValue(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}
