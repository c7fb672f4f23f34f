import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, inject, vi } from 'vitest';
import { builtProgram } from './built-program.js';
import { NO_THREAD } from './child-script.js';
import type { Rig } from './rig.js';

/**
 * Only the `script` of util-linux runs a command in a pseudo-terminal and takes its input from a
 * pipe.
 */
export const hasTerminal =
  spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false;
if (!hasTerminal) console.warn('skipped: no `script` of util-linux, so no pseudo-terminal');

const KEYS = { 'Ctrl-C': '\u0003', 'Ctrl-D': '\u0004' } as const;

/** A command in a pseudo-terminal of 80 columns and 40 rows. */
export interface Terminal {
  /** Everything that it has written, with the sequences that move the cursor. */
  shown(): string;
  isShown(text: string): Promise<void>;
  /** Resolves with the exit code of the command. */
  exit(): Promise<unknown>;
  press(key: keyof typeof KEYS): void;
  type(line: string): void;
  close(): void;
}

/** Starts a command on the server of the tests. */
export async function atTerminal(
  { home }: Pick<Rig, 'home'>,
  ...words: readonly string[]
): Promise<Terminal> {
  const program = [process.execPath, await builtProgram()];
  const command = [...program, ...words, '--address', inject('temporalAddress')];
  const sized = `stty rows 40 cols 80; exec ${command.join(' ')}`;
  const terminal = spawn('script', ['-qefc', sized, '/dev/null'], {
    env: {
      ...NO_THREAD,
      PATH: process.env['PATH'],
      HOME: home,
      PERDURE_HOME: home,
      TERM: 'xterm',
      NO_COLOR: '1',
    },
  });
  const exited = once(terminal, 'exit');
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  return {
    shown: () => shown,
    isShown: async (text) =>
      await vi.waitFor(() => expect(shown).toContain(text), { timeout: 30_000, interval: 50 }),
    exit: async () => (await exited)[0],
    press: (key) => void terminal.stdin.write(KEYS[key]),
    type: (line) => void terminal.stdin.write(`${line}\r`),
    close() {
      terminal.stdin.end();
      terminal.kill();
    },
  };
}

/** Returns what a terminal has shown, without the sequences that move the cursor. */
export function textOf(terminal: Terminal): string {
  // oxlint-disable-next-line no-control-regex -- the terminal's own sequences
  return terminal.shown().replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, '');
}
