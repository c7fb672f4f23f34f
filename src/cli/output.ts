import { isatty } from 'node:tty';
import picocolors from 'picocolors';

export function writeData(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function writeTalk(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Whether a person sits there who reads and can type: everything is a terminal. */
export function isTerminal(): boolean {
  return [0, 1, 2].every((stream) => isatty(stream));
}

/** NO_COLOR and FORCE_COLOR count; else colour is for terminals. */
export function colorWanted(env: NodeJS.ProcessEnv): boolean {
  if (env['NO_COLOR']) return false;
  return env['FORCE_COLOR'] ? env['FORCE_COLOR'] !== '0' : isatty(2);
}

/** Colours for talk. */
export type Palette = ReturnType<typeof picocolors.createColors>;

export function palette(color: boolean): Palette {
  return picocolors.createColors(color);
}
