import type { Argument, Command as Entry, Option } from 'commander';
import { createProgram } from '../../src/cli/program.js';

/** A command with its arguments and options. */
export interface DeclaredCommand {
  /** As a user writes it, without `perdure`, such as `schedule create`. */
  readonly path: string;
  readonly entry: Entry;
  /** What its help shows below the options; empty for most. */
  readonly after: string;
}

/** Returns every command in the order of `--help`, after the module that declares its options was loaded. */
export async function declaredCommands(): Promise<readonly DeclaredCommand[]> {
  const found: DeclaredCommand[] = [];
  for (const path of pathsOf(createProgram(async () => undefined))) {
    // The help loads the module, so each command needs a program of its own.
    const program = createProgram(async () => undefined);
    const entry = entryAt(program, path);
    const printed: string[] = [];
    entry.configureOutput({ writeOut: (text) => printed.push(text), writeErr: () => undefined });
    await program.parseAsync([...path, '--help'], { from: 'user' }).catch(() => undefined);
    const [, ...after] = printed;
    found.push({ path: path.join(' '), entry, after: after.join('').trim() });
  }
  return found;
}

function pathsOf(entry: Entry): readonly (readonly string[])[] {
  return entry.commands.flatMap((one) => [
    [one.name()],
    ...pathsOf(one).map((path) => [one.name(), ...path]),
  ]);
}

function entryAt(entry: Entry, [name, ...rest]: readonly string[]): Entry {
  const found = entry.commands.find((one) => one.name() === name);
  return found === undefined ? entry : entryAt(found, rest);
}

/** Returns the page of all commands, as Markdown: each with its arguments and its options. */
export async function commandsPage(): Promise<string> {
  const program = createProgram(async () => undefined);
  const commands = await declaredCommands();
  const groupOf = new Map(program.commands.map((one) => [one.name(), one.helpGroup()]));
  const sections = commands.flatMap(({ path, entry, after }, index) => {
    const group = (at: number): string => groupOf.get(commands[at]?.path.split(' ')[0] ?? '') ?? '';
    const isFirst = index === 0 || group(index) !== group(index - 1);
    return [
      ...(isFirst ? [`## ${group(index).replace(/:$/, '')}`] : []),
      ...sectionOf(path, entry),
      // Several commands end with the same text.
      ...(after === '' || after === commands[index - 1]?.after
        ? []
        : [`\`\`\`text\n${after}\n\`\`\``]),
    ];
  });
  const intro =
    'Every command with its arguments and options, as `--help` prints them. An option has the same meaning at every ' +
    'command. [The command](../command.md) says what they are for, and has statuses, error codes, and exit codes. ' +
    'This page is generated: `npm run reference`.';
  const global = listOf(program.options.map(optionLine));
  return `${['# Commands', intro, '## Options of every command', global, ...sections].join('\n\n')}\n`;
}

function sectionOf(path: string, entry: Entry): readonly string[] {
  const { registeredArguments: args, options } = entry;
  const usage = `perdure ${path} ${entry.usage()}`.trim();
  return [
    `### ${path}`,
    sentence(entry.description()),
    `\`\`\`text\n${usage}\n\`\`\``,
    ...(args.length + options.length === 0
      ? []
      : [listOf([...args.map(argumentLine), ...options.map(optionLine)])]),
  ];
}

function listOf(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}

function argumentLine(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return `\`${argument.required ? `<${name}>` : `[${name}]`}\`: ${argument.description}`;
}

function optionLine({ flags, description, mandatory, argChoices }: Option): string {
  const choices = argChoices?.map((choice) => `\`${choice}\``).join(', ');
  const ends = [mandatory && 'required', choices && `one of ${choices}`].filter(Boolean);
  return [`\`${flags}\`: ${description}`, ...ends].join('; ');
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}
