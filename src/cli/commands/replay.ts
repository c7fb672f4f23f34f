import { readFile } from 'node:fs/promises';
import type { Replayed } from '../../replay.js';
import type { Command } from '../command.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { dataPalette } from '../table.js';
import { count, printable } from '../words.js';
import type { Palette } from '../output.js';

export interface ReplayOptions {
  readonly file: readonly string[];
}

interface Result {
  readonly file: string;
  readonly replayed: Replayed;
}

/** `replay FILE…`: whether this version would do again what histories say; needs no server. */
export const replay: Command<ReplayOptions> = async (context, { file: files }) => {
  const { installRuntime } = await import('../../runtime.js');
  // What is wrong is told per file; the SDK's own words would come in between.
  installRuntime('ERROR', () => undefined);
  const paint = dataPalette(context);
  const results: Result[] = [];
  for (const file of files) {
    const result = { file, replayed: await replayFile(file) };
    results.push(result);
    if (!context.options.json) context.out(line(result, paint));
  }
  if (context.options.json) {
    const rows = results.map(({ file, replayed }) => ({
      file,
      ok: replayed.type === 'same',
      ...replayed,
    }));
    context.out(JSON.stringify(rows));
  }
  return exitCode(results);
};

async function replayFile(file: string): Promise<Replayed> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { type: 'no_history', reason: `it cannot be read (${why})` };
  }
  const { replayHistory } = await import('../../replay.js');
  return await replayHistory(text);
}

function line({ file, replayed }: Result, paint: Palette): string {
  switch (replayed.type) {
    case 'same':
      return `${paint.green('ok')}         ${file} · ${count(replayed.events, 'event')}`;
    case 'different':
      return `${paint.red('different')}  ${file} · ${oneLine(replayed.reason)}`;
    case 'broken':
      return `${paint.red('broken')}     ${file} · ${oneLine(replayed.reason)}`;
    case 'no_history':
      return `${paint.yellow('refused')}    ${file} · no history: ${oneLine(replayed.reason)}`;
  }
}

function oneLine(text: string): string {
  return printable(text).replaceAll('\n', ' ');
}

/** A history that fails outweighs a file that is none. */
function exitCode(results: readonly Result[]): ExitCode {
  const types = results.map(({ replayed }) => replayed.type);
  if (types.includes('different') || types.includes('broken')) return EXIT.failed;
  return types.includes('no_history') ? EXIT.usage : EXIT.completed;
}
