import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { createProgram } from '../src/cli/program.js';

const ROOT = new URL('../', import.meta.url).pathname;

/** A command as a page shows it. */
interface Shown {
  readonly page: string;
  readonly line: string;
  /** Whether the reader may paste it, so that nothing may be missing. */
  readonly isWhole: boolean;
}

function pagesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'));
}

const PAGES = [
  'README.md',
  'AGENTS.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...['docs', 'examples', 'skills'].flatMap(pagesBelow),
];

const SHELLS = new Set(['sh', 'bash']);
const COMMAND = /(?<![\w./-])(?:npx perdure|perdure|npm start --|node bin\/perdure\.js) (.*)/;

/** What follows the words of a command for the shell, outside quotes: a comment, a pipe, another command. */
const REST = /^((?:[^'"#&|;>]|'[^']*'|"(?:\\.|[^"\\])*")*)/;

function shownOn(page: string): readonly Shown[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)];
  const whole = blocks
    .filter(([, language = '']) => SHELLS.has(language))
    .flatMap(([, , block = '']) => block.replaceAll(/\\\n */g, '').split('\n'))
    .flatMap((line) => line.split(/&&|;/))
    .map((line) => ({ page, line, isWhole: true }));
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '');
  const spans = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, line = '']) => ({
    page,
    line,
    isWhole: false,
  }));
  return [...whole, ...spans].flatMap((shown) => {
    const [, rest = ''] = COMMAND.exec(shown.line) ?? [];
    const [, line = ''] = REST.exec(rest) ?? [];
    // A span that begins with something else may be a sentence.
    const isCommand = shown.isWhole || /^(?:npx |npm |node |perdure )/.test(shown.line);
    return line === '' || !isCommand ? [] : [{ ...shown, line }];
  });
}

/** What pages write for values of the reader. */
const VALUES: Readonly<Record<string, string>> = {
  DIGEST: 'ab12cd34ef56',
  N: '3',
  '…': 'ab12cd34ef56',
};

/** The words of a command, as a shell would pass them; `[…]` is what may be omitted. */
function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:[^\s'"]|'[^']*'|"(?:\\.|[^"\\])*")+/g) ?? [];
  return words
    .map((word) => word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, a, b) => a ?? b))
    .map((word) => word.replace(/^\[(.*?)\]?$/, '$1').replace(/(?<=\w)\]$/, ''))
    .map((word) => VALUES[word] ?? word);
}

/** What a span may leave to the reader. */
const OMITTED = new Set([
  'commander.missingArgument',
  'commander.optionMissingArgument',
  'commander.missingMandatoryOptionValue',
]);

/** Returns why a command cannot be used as it is shown; null if it can. */
async function faultOf({ line, isWhole }: Shown): Promise<string | null> {
  const program = createProgram(async () => undefined).configureOutput({
    writeOut: () => undefined,
    writeErr: () => undefined,
  });
  // The commands copy these settings when they are added.
  for (const command of program.commands) command.copyInheritedSettings(program);
  try {
    await program.parseAsync([...wordsOf(line)], { from: 'user' });
    return null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = error instanceof CommanderError ? error.code : '';
    if (code === 'commander.helpDisplayed' || code === 'commander.version') return null;
    return !isWhole && (OMITTED.has(code) || code === 'commander.help') ? null : error.message;
  }
}

test('every command on a page is one that the program takes', async () => {
  const shown = PAGES.flatMap(shownOn);
  expect(shown.filter(({ isWhole }) => isWhole).length).toBeGreaterThan(40);
  expect(shown.length).toBeGreaterThan(150);
  const faults = [];
  for (const one of shown) {
    const fault = await faultOf(one);
    if (fault !== null) faults.push(`${one.page}: ${one.line}: ${fault}`);
  }
  expect(faults).toEqual([]);
});
