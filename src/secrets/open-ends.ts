import type { Form, Forms } from './forms.js';
import { readDecimal, readEscapes, readHex, readPacked, survey, type Reading } from './readings.js';

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
export function compileOpenEnds(secrets: readonly Forms[]): (text: string) => number {
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
