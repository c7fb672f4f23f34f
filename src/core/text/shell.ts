import { printable } from './hidden.js';

/** A word that a shell reads as it is. A `=` or `~` at the start is replaced by some shells. */
const PLAIN = /^[\w./:@+-][\w./:@=+-]*$/;
/** Characters that stand for themselves in a format of `printf` within double quotes. */
const NOT_LITERAL = /^-|[^\w ./:@=+,-]/gu;

/**
 * Returns a word quoted for a POSIX shell. The result is one line of visible characters: a word with
 * a line break or a hidden character becomes a `printf` with octal escapes.
 */
export function shellWord(word: string): string {
  if (PLAIN.test(word)) return word;
  if (printable(word) === word && !/[\n\t]/.test(word)) {
    return `'${word.replaceAll("'", String.raw`'\''`)}'`;
  }
  // `$(…)` drops line breaks at the end.
  let length = word.length;
  while (word[length - 1] === '\n') length -= 1;
  const end = word.length - length;
  const format = word.slice(0, length).replaceAll(NOT_LITERAL, octal);
  return `"$(printf '${format}')"${String.raw`$'\n'`.repeat(end)}`;
}

function octal(character: string): string {
  return utf8(character.codePointAt(0) ?? 0)
    .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
    .join('');
}

/** Returns the bytes of a character. There is no `TextEncoder` in a workflow. */
function utf8(code: number): readonly number[] {
  const tail = (shift: number): number => 0x80 | ((code >> shift) & 0x3f);
  if (code < 0x80) return [code];
  if (code < 0x800) return [0xc0 | (code >> 6), tail(0)];
  if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)];
  return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)];
}

/** A command with its operands, such as ids, and its options with their values. */
export interface ShellCommand {
  /** Written as it is. */
  readonly program: string;
  readonly operands: readonly string[];
  readonly options: readonly string[];
}

/**
 * Returns a command line for a POSIX shell, in which every operand and option is one word. Options
 * come first if an operand looks like one.
 */
export function shellLine({ program, operands, options }: ShellCommand): string {
  const words = operands.some((operand) => operand.startsWith('-'))
    ? [...options, '--', ...operands]
    : [...operands, ...options];
  return [program, ...words.map(shellWord)].join(' ');
}
