import { readFile } from 'node:fs/promises';
import type { ReplayResult } from '../../worker/replay.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { dataPalette } from '../format/table.js';
import { replayLine } from '../reports/replay-lines.js';
import { OPEN_RUNS_QUERY } from '../doctor/open-runs.js';
import { replayFromServer } from './replay-from-server.js';

export interface ReplayOptions {
  readonly file: readonly string[];
  /** A visibility query; true for the flag without a query: all running runs. */
  readonly fromServer?: string | true;
  /** Maximum number of runs of the server; default 1,000. */
  readonly max?: number;
}

const RUNS = 1_000;

interface Result {
  readonly file: string;
  readonly replayed: ReplayResult;
}

/**
 * `replay FILE…`: checks whether this version reproduces the recorded decisions. Needs a server
 * only with `--from-server`.
 */
export const replay: Command<ReplayOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('[file...]', 'histories, as export writes them'),
      'fromServer',
      'max',
    ),
  async run(context, options) {
    const { file: files, fromServer, max: limit = RUNS } = options;
    checkOptions(options);
    const { installRuntime } = await import('../../worker/runtime.js');
    // Each history gets its own line, without messages of the SDK in between.
    installRuntime('ERROR', () => undefined);
    if (fromServer === undefined) return await replayFiles(context, files);
    const query = fromServer === true ? OPEN_RUNS_QUERY : fromServer;
    return await replayFromServer(context, { query, limit });
  },
};

async function replayFiles(context: CliContext, files: readonly string[]): Promise<ExitCode> {
  const format = { good: 'ok', paint: dataPalette(context) };
  const results: Result[] = [];
  for (const file of files) {
    const result = { file, replayed: await replayFile(file) };
    results.push(result);
    if (!context.options.json) context.out(replayLine(file, result.replayed, format));
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
}

function checkOptions({ file, fromServer, max: limit = RUNS }: ReplayOptions): void {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new UsageError(`--max: expected a whole number from 1, got ${limit}`);
  }
  if (fromServer === undefined && file.length === 0) {
    throw new UsageError(
      'file: expected files with histories, got none; name some, or replay running runs with --from-server [QUERY]',
    );
  }
  if (fromServer !== undefined && file.length > 0) {
    const query = fromServer === true ? '' : ` '${fromServer}'`;
    throw new UsageError(
      `--from-server: expected files or a query, got${query} and ${file.join(' ')}; put a query in one pair of quotes`,
    );
  }
}

async function replayFile(file: string): Promise<ReplayResult> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { type: 'no_history', reason: `the file cannot be read (${reason})` };
  }
  const { replayHistory } = await import('../../worker/replay.js');
  return await replayHistory(text);
}

/** A history that does not replay takes precedence over a file that is not a history. */
function exitCode(results: readonly Result[]): ExitCode {
  const types = results.map(({ replayed }) => replayed.type);
  if (types.includes('different') || types.includes('broken')) return EXIT.failed;
  return types.includes('no_history') ? EXIT.usage : EXIT.completed;
}
