import type { Form, Forms } from './forms.js';
import { readDecimal, readEscapes, readHex, readPacked, survey, type Reading } from './readings.js';

/** The end of a text is open if this many of its last characters are anywhere in a form. */
const GRAM = 4;
/** Of a character in an encoding, such as an element of a list in indented JSON. */
const MAX_WRITTEN_CHARACTERS = 16;
const MAX_OPEN_CHARACTERS = 64 * 1024;
/** Bits for each group of characters: one in 16 others looks the same at most. */
const BITS_PER_GRAM = 16;
const MAX_BITS = 1 << 26;

/** What an escape begins with. */
// oxlint-disable-next-line eslint/no-control-regex -- UTF-16 has characters of zero
const ESCAPE = /[\\%&\0]/;

/** The groups of four characters of all forms, as a set of hashes. */
interface Grams {
  readonly bits: Uint8Array;
  /** The length of the longest form. */
  readonly most: number;
}

/**
 * Compiles a search for the offset from which the end of a text may become a part of a secret in any
 * form: the start of the longest end whose every four characters are somewhere in a form.
 */
export function compileOpenEnds(secrets: readonly Forms[]): (text: string) => number {
  const written = gramsOf(secrets.flatMap((each) => each.written));
  const read = gramsOf(secrets.flatMap((each) => each.read));
  const packed = gramsOf(secrets.flatMap((each) => each.packed));
  const reach = Math.min(written.most * MAX_WRITTEN_CHARACTERS + 256, MAX_OPEN_CHARACTERS);
  return (text) => {
    const cut = Math.max(0, text.length - reach);
    const end = text.slice(cut);
    const seen = survey(end);
    const last = seen.numbers.at(-1);
    const numbers = last?.[1] === end.length ? last : null;
    let open = chainStart(end, written) ?? end.length;
    const look = ({ text: known, starts }: Reading, grams: Grams): void => {
      const at = chainStart(known, grams);
      if (at !== null) open = Math.min(open, starts[at] ?? end.length);
    };
    if (chainStart(seen.packed, packed) !== null) look(readPacked(end, seen.packed), packed);
    if (ESCAPE.test(end)) look(readEscapes(end), read);
    if (numbers !== null) {
      look(readHex(end, [numbers]), read);
      look(readDecimal(end, [numbers], false), read);
    }
    return cut + open;
  };
}

/** Returns where the longest end begins whose every group is in a form; null if there is none. */
function chainStart(text: string, { bits, most }: Grams): number | null {
  let at = text.length - GRAM + 1;
  const first = Math.max(0, text.length - most);
  while (at > first && has(bits, text, at - 1)) at -= 1;
  return at + GRAM > text.length ? null : at;
}

function gramsOf(forms: readonly Form[]): Grams {
  let count = 0;
  let most = 0;
  for (const { text } of forms) {
    count += text.length;
    most = Math.max(most, text.length);
  }
  let size = 1 << 16;
  while (size < count * BITS_PER_GRAM && size < MAX_BITS) size *= 2;
  const bits = new Uint8Array(size / 8);
  for (const { text } of forms) {
    for (let at = 0; at + GRAM <= text.length; at += 1) {
      const hash = hashAt(text, at) & (size - 1);
      bits[hash >> 3] = (bits[hash >> 3] ?? 0) | (1 << (hash & 7));
    }
  }
  return { bits, most };
}

function has(bits: Uint8Array, text: string, at: number): boolean {
  const hash = hashAt(text, at) & (bits.length * 8 - 1);
  return ((bits[hash >> 3] ?? 0) & (1 << (hash & 7))) !== 0;
}

function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let offset = at; offset < at + GRAM; offset += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(offset), 0x9e_37_79_b1);
    hash ^= hash >>> 15;
  }
  return hash;
}
