import stringWidth from 'string-width';
import { printable } from '../../core/text/hidden.js';

const PLAIN = /^[\u0020-\u007e]*$/;
const GRAPHEMES = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** The UTF-16 units that are split at once. */
const WINDOW = 512;
const INDENT = '  ';
/** The minimum width of a line in columns, however deeply it is indented. */
const MIN_COLUMNS = 8;

/** Returns a text as one line in which hidden characters, line breaks, and tabs are visible. */
export function oneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/**
 * Wraps a line to a width in columns. No character is lost: the joined pieces equal the line. It
 * breaks after a space if there is one in the second half of the line.
 */
export function pieces(line: string, columns: number): readonly string[] {
  const width = Math.max(MIN_COLUMNS, columns);
  const cells = PLAIN.test(line) ? null : cellsOf(line);
  const length = cells === null ? line.length : cells.length;
  const result: string[] = [];
  for (let from = 0; from < length;) {
    const fit = cells === null ? Math.min(length, from + width) : fitting(cells, from, width);
    const to = fit >= length ? length : breakPoint(cells ?? line, from, fit);
    result.push(cells === null ? line.slice(from, to) : textOf(cells, from, to));
    from = to;
  }
  return result.length === 0 ? [''] : result;
}

/** Wraps a line; all lines after the first are indented. */
export function wrapped(line: string, columns: number): readonly string[] {
  const [first = ''] = pieces(line, columns);
  const rest = line.slice(first.length);
  if (rest === '') return [first];
  return [first, ...pieces(rest, columns - INDENT.length).map((piece) => INDENT + piece)];
}

/**
 * Wraps a command between its words, with a backslash at the end of each line, so it can be copied
 * as is. A word that is longer than a line is not split.
 */
export function wrappedCommand(command: string, columns: number): readonly string[] {
  const words = command.match(/(?:[^\s'\\]|\\.|'[^']*')+/gs) ?? [];
  const lines: string[] = [];
  let used = 0;
  for (const word of words) {
    const last = lines.at(-1);
    const width = cellsOf(word).reduce((sum, cell) => sum + cell.width, 0);
    // Room for the blank and the backslash.
    const fits = used + 1 + width + 2 <= columns;
    if (last !== undefined && fits) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(last === undefined ? word : `${INDENT}${word}`);
    used = last !== undefined && fits ? used + 1 + width : width + (last === undefined ? 0 : 2);
  }
  return lines.map((line, at) => (at === lines.length - 1 ? line : `${line} \\`));
}

/** Returns text by others, quoted so that it cannot be mistaken for our own lines. */
export function quoted(title: string, texts: readonly string[], width: number): readonly string[] {
  const lines = texts.flatMap((text) => printable(text).replaceAll('\t', ' ').split('\n'));
  return [
    ...wrapped(`${title}:`, width),
    ...lines.flatMap((line) => pieces(line, width - 2)).map((piece) => `> ${piece}`),
  ];
}

interface Cell {
  readonly text: string;
  readonly width: number;
}

function cellsOf(line: string): readonly Cell[] {
  // Measuring takes microseconds, and a long text repeats few characters.
  const widths = new Map<string, number>();
  return graphemes(line).map((text) => {
    const width = PLAIN.test(text) ? text.length : (widths.get(text) ?? stringWidth(text));
    widths.set(text, width);
    return { text, width };
  });
}

/** Splits a text by window, because a segmenter takes quadratic time for a long text. */
function graphemes(text: string): readonly string[] {
  const found: string[] = [];
  for (let from = 0; from < text.length;) {
    const to = from + WINDOW;
    const parts = Array.from(GRAPHEMES.segment(text.slice(from, to)), ({ segment }) => segment);
    // The last one may go on after the window.
    const whole = to < text.length && parts.length > 1 ? parts.slice(0, -1) : parts;
    for (const part of whole) {
      found.push(part);
      from += part.length;
    }
  }
  return found;
}

/** Returns the index after the last cell that fits into a line, which has at least one cell. */
function fitting(cells: readonly Cell[], from: number, columns: number): number {
  let used = 0;
  let at = from;
  for (; at < cells.length; at += 1) {
    used += cells[at]?.width ?? 0;
    if (used > columns && at > from) break;
  }
  return at;
}

function breakPoint(cells: readonly Cell[] | string, from: number, to: number): number {
  const half = from + (to - from) / 2;
  for (let at = to - 1; at >= half; at -= 1) {
    const cell = cells[at];
    if ((typeof cell === 'string' ? cell : cell?.text) === ' ') return at + 1;
  }
  return to;
}

function textOf(cells: readonly Cell[], from: number, to: number): string {
  return cells
    .slice(from, to)
    .map(({ text }) => text)
    .join('');
}
