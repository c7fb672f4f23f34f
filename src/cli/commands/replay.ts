import { readFile } from 'node:fs/promises';
import { isGrpcServiceError } from '@temporalio/client';
import { visible } from '../../core/state/summaries.js';
import { type SkipCounts, createSkipCounts, matchingRuns } from '../../history/segments.js';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import type { ReplayResult } from '../../worker/bundle.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { OPEN_RUNS_QUERY } from '../doctor/routing.js';
import { dataPalette, formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { nextCommand } from '../reports/next-command.js';
import { replayLine } from '../reports/report-run.js';
import { WHICH } from './eval.js';

const PROGRESS_EVERY = 100;

type Row = ReplayResult & { readonly id: string; readonly runId: string; readonly ok: boolean };

/** Replays the histories of the runs that match a visibility query, with this version's code. */
async function replayFromServer(
  context: CliContext,
  request: { readonly query: string; readonly limit: number },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const client = await context.client();
  const { replayRuns } = await import('../../worker/bundle.js');
  const format = { good: 'same', paint: dataPalette(context) };
  const { json } = context.options;
  const skipped = createSkipCounts();
  const rows: Row[] = [];
  context.note(`Replaying the runs that match: ${visible(request.query)}`);
  try {
    for await (const { run, replayed } of replayRuns(matchingRuns(client, request, skipped))) {
      const { id, runId } = run;
      rows.push({ id, runId, ok: replayed.type === 'same', ...replayed });
      if (!json) context.out(replayLine(id, replayed, format));
      if (rows.length % PROGRESS_EVERY === 0)
        context.note(`${formatCount(rows.length, 'run')} so far`);
    }
  } catch (error) {
    throw toUsageError(error, context, request.query);
  }
  const counts = countTypes(rows);
  if (json) {
    const { more, unreadable } = skipped;
    const report = { query: request.query, ...counts, more, unreadable, runs: rows };
    context.out(JSON.stringify(report));
  }
  for (const note of skippedLines(skipped, request.limit)) context.note(note);
  context.note(summaryLine(rows.length, counts));
  const isSame = counts.same === rows.length && skipped.unreadable.length === 0;
  return isSame ? EXIT.completed : EXIT.failed;
}

interface Counts {
  readonly same: number;
  readonly different: number;
  readonly broken: number;
}

function countTypes(rows: readonly Row[]): Counts {
  const countType = (type: ReplayResult['type']): number =>
    rows.filter((row) => row.type === type).length;
  return {
    same: countType('same'),
    different: countType('different'),
    broken: countType('broken'),
  };
}

function summaryLine(total: number, { same, different, broken }: Counts): string {
  if (total === 0) return 'No runs match; nothing was replayed.';
  const parts = [`${same} same`, `${different} different`, `${broken} broken`];
  const verdict = same === total ? 'this build can continue them' : 'do not deploy this build';
  return `${formatCount(total, 'run')}: ${parts.join(', ')}; ${verdict}.`;
}

function skippedLines(
  { others, earlier, gone, unreadable, more }: SkipCounts,
  limit: number,
): readonly string[] {
  const types = [...others].map(([type, number]) => `${visible(type)} (${number})`).join(', ');
  return [
    ...(others.size > 0 ? [`Skipped workflows that are not agent runs, by type: ${types}`] : []),
    ...(earlier > 0
      ? [`Skipped ${formatCount(earlier, 'earlier segment')}: their runs have continued`]
      : []),
    ...(gone > 0 ? [`Skipped ${formatCount(gone, 'run')} that the server has deleted`] : []),
    ...(unreadable.length > 0
      ? [`Not replayed, because their histories are encoded: ${unreadable.map(visible).join(', ')}`]
      : []),
    ...(more
      ? [
          `Stopped after ${formatCount(limit, 'run')}; there are more. Replay more with --max ${2 * limit}`,
        ]
      : []),
  ];
}

function toUsageError(error: unknown, context: CliContext, query: string): unknown {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const refusal = [error, cause].find((each) => isGrpcServiceError(each));
  if (refusal === undefined || grpcCode(refusal) !== GRPC.invalidArgument) return error;
  const doctor = nextCommand(context, 'doctor');
  return new UsageError(
    `--from-server: expected a visibility query of Temporal, got ${visible(query)} ` +
      `(${visible(refusal.details)}); give one such as ${OPEN_RUNS_QUERY}, or AgentStatus = 'working' ` +
      `if the namespace has that attribute (check with: ${doctor})`,
    { cause: error },
  );
}

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
    ).addHelpText('after', WHICH),
  async run(context, options) {
    const { file: files, fromServer, max: limit = RUNS } = options;
    checkOptions(options);
    const { installRuntime } = await import('../../worker/log.js');
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
  const { replayHistory } = await import('../../worker/bundle.js');
  return await replayHistory(text);
}

/** A history that does not replay takes precedence over a file that is not a history. */
function exitCode(results: readonly Result[]): ExitCode {
  const types = results.map(({ replayed }) => replayed.type);
  if (types.includes('different') || types.includes('broken')) return EXIT.failed;
  return types.includes('no_history') ? EXIT.usage : EXIT.completed;
}
