import type { Command as Entry } from 'commander';
import { expect, test } from 'vitest';
import { declaredCommands } from '../../scripts/reference/commands.js';
import { createProgram } from '../../src/cli/program.js';
import { OPTIONS } from '../../src/cli/input/options.js';

interface Seen {
  readonly at: string;
  readonly name: string;
  readonly meaning: readonly unknown[];
}

/** Every option of every command, after its declaration was loaded. */
async function allOptions(): Promise<readonly Seen[]> {
  const program = createProgram(async () => undefined);
  const found = optionsOf(program, '');
  for (const { path, entry } of await declaredCommands()) found.push(...optionsOf(entry, path));
  return found;
}

function optionsOf(entry: Entry, at: string): Seen[] {
  return entry.options
    .filter(({ long }) => long !== '--version')
    .map(({ long, flags, description, parseArg, argChoices, mandatory, defaultValue }) => ({
      at,
      name: String(long),
      // Commander makes a parser of its own for each use of choices.
      meaning: [flags, description, argChoices?.join() ?? parseArg, mandatory, defaultValue],
    }));
}

test('an option name has one meaning, one type, and one help text at every command', async () => {
  const options = await allOptions();
  const first = new Map<string, Seen>();
  for (const one of options) {
    const before = first.get(one.name) ?? one;
    first.set(one.name, before);
    expect({ ...one, at: before.at }, `${one.name} of ${one.at}`).toEqual(before);
  }
  const at = (name: string): string =>
    options.flatMap((one) => (one.name === name ? [one.at] : [])).join(', ');
  expect({
    detach: at('--detach'),
    wait: at('--no-wait'),
    by: at('--by'),
    limit: at('--limit'),
  }).toEqual({
    detach: 'run, fork, send, cancel',
    wait: 'run, attach, fork, send',
    by:
      'run, chat, attach, fork, send, pause, resume, limits, close, cancel, approve, deny, edit, answer, ' +
      'resolve, revoke, undo, schedule create, schedule update, erase',
    limit: 'run, fork, limits, schedule create, schedule update',
  });
});

test('the table of options has no option that no command has, and a fitting key for each', async () => {
  const names = new Set((await allOptions()).map(({ name }) => name));
  const flags = Object.entries(OPTIONS).map(([key, { flags: text }]) => {
    const [name = ''] = text.split(' ');
    return { key, name };
  });
  expect(flags.map(({ name }) => name).toSorted()).toEqual([...names].toSorted());
  for (const { key, name } of flags) {
    const camel = name.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    expect(key).toBe(camel);
  }
});
