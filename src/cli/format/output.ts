import { isatty } from 'node:tty';
import picocolors from 'picocolors';
import { escapeJson, printable } from '../../core/text/hidden.js';

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
