import { relative } from 'node:path';
import { commandLine } from '../../core/requests/commands.js';
import { shellLine, shellWord } from '../../core/text/shell.js';
import type { CliContext, GlobalOptions } from '../context.js';
import { permissionFlags } from '../input/permissions.js';

const PLACE_OPTIONS = [
  ['config', '--config'],
  ['address', '--address'],
  ['namespace', '--namespace'],
  ['taskQueue', '--task-queue'],
] as const satisfies readonly (readonly [keyof GlobalOptions, string])[];

/**
 * Returns a command line to copy. It runs the program as this process was run, on the same server
 * and queue.
 */
export function nextCommand({ options }: Pick<CliContext, 'options'>, command: string): string {
  const flags = placeFlags(options).map((flag) => shellWord(flag));
  return [programName(), command, ...flags].join(' ');
}

/** Returns a command line of words, which are quoted for the shell. */
export function nextCommandOf(
  { options }: Pick<CliContext, 'options'>,
  [command = '', ...rest]: readonly string[],
): string {
  const words = [...rest, ...placeFlags(options)];
  return shellLine({ program: `${programName()} ${command}`, operands: [], options: words });
}

/**
 * Returns a command line about a run or a schedule. `words`: the command, the id, further operands,
 * and the options. An id may be any text, also one that looks like an option.
 */
export function nextCommandAbout(
  { options }: Pick<CliContext, 'options'>,
  words: readonly string[],
): string {
  return commandLine(programName(), words, placeFlags(options));
}

/**
 * Like `nextCommandAbout`. It includes the run's task queue if that differs from ours.
 */
export async function nextCommandFor(
  context: CliContext,
  { taskQueue }: { readonly taskQueue: string },
  words: readonly string[],
): Promise<string> {
  const here = await context.taskQueue();
  const options = here === taskQueue ? context.options : { ...context.options, taskQueue };
  return nextCommandAbout({ options }, words);
}

/** Returns the flags that select the server, the queue, the configuration, and the permissions. */
export function placeFlags(options: GlobalOptions): readonly string[] {
  const places = PLACE_OPTIONS.flatMap(([name, flag]) => {
    const value = options[name];
    if (value === false) return ['--no-config'];
    return value === undefined ? [] : [flag, value];
  });
  return [...places, ...permissionFlags(options)];
}

function programName(): string {
  const file = process.argv[1] ?? '';
  if (!file.endsWith('perdure.js')) return 'npx perdure';
  const near = relative(process.cwd(), file);
  return `node ${near.startsWith('..') ? file : near}`;
}
