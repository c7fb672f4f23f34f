import { readFile } from 'node:fs/promises';
import type { Replayed } from '../../worker/replay.js';
import type { Command } from '../command.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { replayLine } from '../reports/replay-lines.js';
import { dataPalette } from '../format/table.js';

export interface ReplayOptions {
  readonly file: readonly string[];
  /** A visibility query; `true`: the flag alone, for all runs that live. */
  readonly fromServer?: string | true;
  /** Runs of the server, at most; default 1,000. */
  readonly limit?: number;
}

const RUNS = 1_000;

interface Result {
  readonly file: string;
  readonly replayed: Replayed;
}

/** `replay FILE…`: whether this version would do again what histories say; needs no server. */
export const replay: Command<ReplayOptions> = async (context, options) => {
  const { file: files, fromServer, limit = RUNS } = options;
  checkOptions(options);
  const { installRuntime } = await import('../../worker/runtime.js');
  // What is wrong is told per history; the SDK's own words would come in between.
  installRuntime('ERROR', () => undefined);
  if (fromServer !== undefined) {
    const { LIVE_RUNS, replayFromServer } = await import('./replay-from-server.js');
    const query = fromServer === true ? LIVE_RUNS : fromServer;
    return await replayFromServer(context, { query, limit });
  }
  const how = { good: 'ok', paint: dataPalette(context) };
  const results: Result[] = [];
  for (const file of files) {
    const result = { file, replayed: await replayFile(file) };
    results.push(result);
    if (!context.options.json) context.out(replayLine(file, result.replayed, how));
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

function checkOptions({ file, fromServer, limit = RUNS }: ReplayOptions): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new UsageError(`--limit ${limit}: give a whole number from 1`);
  }
  if (fromServer === undefined && file.length === 0) {
    throw new UsageError(
      'name files with histories, or replay live runs with --from-server [QUERY]',
    );
  }
  if (fromServer !== undefined && file.length > 0) {
    const query = fromServer === true ? '' : ` '${fromServer}'`;
    throw new UsageError(
      `--from-server${query} and ${file.join(' ')}: give files or a query, and a query in one pair of quotes`,
    );
  }
}

async function replayFile(file: string): Promise<Replayed> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { type: 'no_history', reason: `it cannot be read (${why})` };
  }
  const { replayHistory } = await import('../../worker/replay.js');
  return await replayHistory(text);
}

/** A history that fails outweighs a file that is none. */
function exitCode(results: readonly Result[]): ExitCode {
  const types = results.map(({ replayed }) => replayed.type);
  if (types.includes('different') || types.includes('broken')) return EXIT.failed;
  return types.includes('no_history') ? EXIT.usage : EXIT.completed;
}
