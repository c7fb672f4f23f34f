import { isatty } from 'node:tty';
import picocolors from 'picocolors';
import { escapeJson, printable } from '../../core/text/hidden.js';

/** A line of data. `json`: it is JSON, whose hidden characters are escaped in JSON's own way. */
export function writeData(line: string, { json, color }: { json: boolean; color: boolean }): void {
  process.stdout.write(`${json ? escapeJson(line) : escapeHidden(line, color)}\n`);
}

export function writeMessage(line: string, color: boolean): void {
  process.stderr.write(`${escapeHidden(line, color)}\n`);
}

/** What the palette writes: bold, dim, the colors in use, and their ends. */
// oxlint-disable-next-line no-control-regex -- escape sequences are the point
const PAINT = /(\u001b\[(?:1|2|22|31|32|33|36|39)m)/;

/**
 * The last look at what goes to a terminal: hidden characters are written as escapes, except our own
 * colors. What others said was made printable before it was painted; this catches what was forgotten.
 */
export function escapeHidden(text: string, color: boolean): string {
  if (!color) return printable(text);
  return text
    .split(PAINT)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join('');
}

/** Whether a person sits there who reads and can type: everything is a terminal. */
export function isTerminal(): boolean {
  return [0, 1, 2].every((stream) => isatty(stream));
}

/** NO_COLOR and FORCE_COLOR count; else color is for terminals. */
export function isColorWanted(env: NodeJS.ProcessEnv): boolean {
  if (env['NO_COLOR']) return false;
  return env['FORCE_COLOR'] ? env['FORCE_COLOR'] !== '0' : isatty(2);
}

/** Colors for talk. */
export type Palette = ReturnType<typeof picocolors.createColors>;

export function palette(color: boolean): Palette {
  return picocolors.createColors(color);
}
