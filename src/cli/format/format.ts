import { isatty } from 'node:tty';
import picocolors from 'picocolors';
import stringWidth from 'string-width';
import { escapeJson, formatDuration, printable, formatCount } from '../../core/text/text.js';
import type { Usage } from '../../core/transcript/outcome.js';
import type { CliContext } from '../context.js';

export { formatCount } from '../../core/text/text.js';
export { formatDuration } from '../../core/text/text.js';

/** Formats token usage: `1.2k in, 80 out`. The cost follows if it is known and not zero. */
export function formatUsage({ inputTokens, outputTokens, costUsd, estimated }: Usage): string {
  const about = estimated ? 'about ' : '';
  const tokens = `${about}${formatTokens(inputTokens)} in, ${formatTokens(outputTokens)} out`;
  return costUsd === null || costUsd === 0 ? tokens : `${tokens} · ${formatDollars(costUsd)}`;
}

function formatTokens(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1_000).toFixed(1)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

function formatDollars(amount: number): string {
  return amount < 0.0001 ? '< $0.0001' : `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}

/** Formats a span of milliseconds in its largest unit: `12 s`, `5 min`, `3 hours`, `2 days`. */
export function formatSpan(ms: number): string {
  return formatDuration(ms, { as: 'rounded' });
}

/** Formats how long ago a time was: `5 min ago`. Both arguments are Unix times in ms. */
export function formatAgo(at: number, now: number): string {
  return `${formatSpan(now - at)} ago`;
}

/** Formats a Unix time in ms in the local time zone: `2026-11-21 14:03:12`. */
export function formatDateTime(at: number): string {
  const date = new Date(at);
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  return `${parts.map(twoDigits).join('-')} ${formatTime(at)}`;
}

/** Formats the time of day of a Unix time in ms in the local time zone: `14:03:12`. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':');
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}

/**
 * Writes a line of data to stdout. In a line of JSON, hidden characters are escaped as JSON does.
 */
export function writeData(line: string, { json, color }: { json: boolean; color: boolean }): void {
  process.stdout.write(`${json ? escapeJson(line) : escapeHidden(line, color)}\n`);
}

/** Writes a message to stderr. */
export function writeMessage(line: string, color: boolean): void {
  process.stderr.write(`${escapeHidden(line, color)}\n`);
}

/** The escape sequences that the palette writes: bold, dim, the colors in use, and their resets. */
// oxlint-disable-next-line no-control-regex -- escape sequences are the point
const PAINT = /(\u001b\[(?:1|2|22|31|32|33|36|39)m)/;

/**
 * Escapes the hidden characters of a text for the terminal, except our own colors. Callers make
 * foreign text printable before they color it; this is the second line of defense.
 */
export function escapeHidden(text: string, color: boolean): string {
  if (!color) return printable(text);
  return text
    .split(PAINT)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join('');
}

/** Returns whether a person reads and can type: stdin, stdout, and stderr are terminals. */
export function isTerminal(): boolean {
  return [0, 1, 2].every((stream) => isatty(stream));
}

/** Returns whether to use colors: as NO_COLOR or FORCE_COLOR specifies, else only on a terminal. */
export function isColorWanted(env: NodeJS.ProcessEnv): boolean {
  if (env['NO_COLOR']) return false;
  return env['FORCE_COLOR'] ? env['FORCE_COLOR'] !== '0' : isatty(2);
}

/** The colors of messages. */
export type Palette = ReturnType<typeof picocolors.createColors>;

/** Creates a palette, which adds no colors if `color` is false. */
export function palette(color: boolean): Palette {
  return picocolors.createColors(color);
}

const GAP = '  ';

/** Aligns rows in columns by their display width. The last column is not padded. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => stringWidth(row[at] ?? ''))),
  );
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : padEnd(cell, widths[at] ?? 0)))
      .join(GAP)
      .trimEnd(),
  );
}

function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)));
}

/** A labeled group of lines. It is omitted if there are no lines. */
interface ListEntry {
  readonly name: string;
  readonly lines: readonly string[];
}

/** Lays out entries with names on the left and their lines on the right, equally indented. */
export function entries(all: readonly ListEntry[], paint: Palette): readonly string[] {
  const width = Math.max(...all.map(({ name }) => name.length));
  return all.flatMap(({ name, lines }) =>
    lines.map((line, at) => {
      const label = at === 0 ? paint.dim(name.padEnd(width)) : ' '.repeat(width);
      return `${label}${GAP}${line}`.trimEnd();
    }),
  );
}

/** Returns the palette for data: colored only on a terminal, or with FORCE_COLOR. */
export function dataPalette({ color, env }: Pick<CliContext, 'color' | 'env'>): Palette {
  return palette(color && (process.stdout.isTTY || Boolean(env['FORCE_COLOR'])));
}

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
export function pieces(line: string, limit: number): readonly string[] {
  const width = Math.max(MIN_COLUMNS, limit);
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
export function wrapped(line: string, width: number): readonly string[] {
  const [first = ''] = pieces(line, width);
  const rest = line.slice(first.length);
  if (rest === '') return [first];
  return [first, ...pieces(rest, width - INDENT.length).map((piece) => INDENT + piece)];
}

/** Cuts a line, which may have our own colors, to a width in columns; `…` marks the cut. */
export function cutLine(line: string, width: number): string {
  if (stringWidth(line) <= width) return line;
  // Room for the mark.
  let left = width - 1;
  const parts = line.split(PAINT).map((part, at) => {
    if (at % 2 === 1 || left < 0) return at % 2 === 1 ? part : '';
    const cells = cellsOf(part);
    const cut = cells.findIndex((cell) => (left -= cell.width) < 0);
    return cut < 0 ? part : `${textOf(cells, 0, cut).trimEnd()}…`;
  });
  return parts.join('');
}

/**
 * Wraps a command between its words, with a backslash at the end of each line, so it can be copied
 * as is. A word that is longer than a line is not split.
 */
export function wrappedCommand(command: string, limit: number): readonly string[] {
  const words = command.match(/(?:[^\s'\\]|\\.|'[^']*')+/gs) ?? [];
  const lines: string[] = [];
  let used = 0;
  for (const word of words) {
    const last = lines.at(-1);
    const width = cellsOf(word).reduce((sum, cell) => sum + cell.width, 0);
    // Room for the blank and the backslash.
    const fits = used + 1 + width + 2 <= limit;
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
function fitting(cells: readonly Cell[], from: number, width: number): number {
  let used = 0;
  let at = from;
  for (; at < cells.length; at += 1) {
    used += cells[at]?.width ?? 0;
    if (used > width && at > from) break;
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

/** The maximum number of lines about the past of a joined run. */
const EARLIER_LINES = 5;

/** Returns the last lines about the past of a joined run. */
export function lastLines(lines: readonly string[], paint: Palette): readonly string[] {
  const earlier = lines.length - EARLIER_LINES;
  if (earlier <= 0) return lines;
  return [paint.dim(`… ${formatCount(earlier, 'earlier line')}`), ...lines.slice(-EARLIER_LINES)];
}
