import { relative } from 'node:path';
import type { CliContext, GlobalOptions } from '../context.js';
import { permissionFlags } from '../permissions.js';

const PLACES = [
  ['config', '--config'],
  ['address', '--address'],
  ['namespace', '--namespace'],
  ['taskQueue', '--task-queue'],
] as const satisfies readonly (readonly [keyof GlobalOptions, string])[];

/** A command as it can be copied: called as this one was, and on the same server and queue. */
export function advice({ options }: Pick<CliContext, 'options'>, words: string): string {
  const flags = placeFlags(options).map((flag) => quoted(flag));
  return [programName(), words, ...flags].join(' ');
}

/** The options that say where: a command with the same ones meets the same server and configuration. */
export function placeFlags(options: GlobalOptions): readonly string[] {
  const places = PLACES.flatMap(([name, flag]) => {
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

function quoted(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
