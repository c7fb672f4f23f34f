import { readFile } from 'node:fs/promises';
import { isGrpcServiceError } from '@temporalio/client';
import { visible } from '../../core/state/summaries.js';
import { isObject } from '../../core/text/json.js';
import { printable } from '../../core/text/text.js';
import {
  SHARED_TYPES,
  type SkipCounts,
  createSkipCounts,
  isShared,
  matchingRuns,
} from '../../history/segments.js';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import type { ReplayResult } from '../../worker/bundle.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { OPEN_RUNS_QUERY } from '../doctor/routing.js';
import { type Palette, dataPalette, formatCount } from '../format/format.js';
import { noteServer } from '../hosting/server-notes.js';
import { withOptions } from '../input/options.js';
import { type Place, nextCommand, runnableText } from '../reports/next-command.js';
import { WHICH } from './eval.js';

const PROGRESS_EVERY = 100;

/** The visibility query for what a deploy replays: running runs, and the workflows that they share. */
const OPEN_QUERY = `ExecutionStatus = 'Running' AND (${[
  "WorkflowType = 'agent'",
  ...SHARED_TYPES.map((type) => `WorkflowId STARTS_WITH '${type}:'`),
].join(' OR ')})`;

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
  let shared = 0;
  context.note(`Replaying the runs that match: ${visible(request.query)}`);
  try {
    for await (const { run, replayed } of replayRuns(matchingRuns(client, request, skipped))) {
      const { id, runId } = run;
      rows.push({ id, runId, ok: replayed.type === 'same', ...replayed });
      if (isShared(run)) shared += 1;
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
  const isWhole = skipped.unreadable.length === 0 && !skipped.more;
  context.note(summaryLine({ total: rows.length, shared, isWhole }, counts));
  return isWhole && counts.same === rows.length ? EXIT.completed : EXIT.failed;
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

/** `isWhole`: all that match were replayed; otherwise, nothing shows that this build can continue them. */
function summaryLine(
  {
    total,
    shared,
    isWhole,
  }: { readonly total: number; readonly shared: number; readonly isWhole: boolean },
  { same, different, broken }: Counts,
): string {
  if (total === 0) return `${isWhole ? 'No runs match; n' : 'N'}othing was replayed.`;
  const counts = [
    ...(total > shared ? [formatCount(total - shared, 'run')] : []),
    ...(shared > 0 ? [`${formatCount(shared, 'workflow')} of budgets and rates`] : []),
  ];
  const parts = [`${same} same`, `${different} different`, `${broken} broken`];
  const good = isWhole ? '; this build can continue them' : '; not all were replayed';
  const verdict = same === total ? good : '; do not deploy this build';
  return `${counts.join(' and ')}: ${parts.join(', ')}${verdict}.`;
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
  /** Maximum number of runs of the server; default: all. */
  readonly max?: number;
}

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
    const { file: files, fromServer, max: limit = Infinity } = options;
    checkOptions(options);
    const { installRuntime } = await import('../../worker/log.js');
    // Each history gets its own line, without messages of the SDK in between.
    installRuntime('ERROR', { write: () => undefined });
    if (fromServer === undefined) return await replayFiles(context, files);
    const query = fromServer === true ? OPEN_QUERY : fromServer;
    return await replayFromServer(context, { query, limit });
  },
};

async function replayFiles(context: CliContext, files: readonly string[]): Promise<ExitCode> {
  const format = { good: 'ok', paint: dataPalette(context) };
  const results: Result[] = [];
  for (const file of files) {
    const result = { file, replayed: await replayFile(file, context) };
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

function checkOptions({ file, fromServer, max }: ReplayOptions): void {
  if (max !== undefined && (!Number.isInteger(max) || max < 1)) {
    throw new UsageError(`--max: expected a whole number from 1, got ${max}`);
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

async function replayFile(file: string, place: Place): Promise<ReplayResult> {
  const replayed = await replayedFile(file);
  return replayed.type === 'no_history'
    ? { ...replayed, reason: runnableText(place, replayed.reason) }
    : replayed;
}

async function replayedFile(file: string): Promise<ReplayResult> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const isMissing = isObject(error) && error['code'] === 'ENOENT';
    const why = error instanceof Error ? error.message : String(error);
    const reason = isMissing
      ? 'there is no such file; write the history of a run with: perdure export ID --out FILE'
      : `the file cannot be read (${why})`;
    return { type: 'no_history', reason };
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

/** Returns the line about one history. `good` is the word for a history that replays. */
function replayLine(
  name: string,
  replayed: ReplayResult,
  { good, paint }: { readonly good: string; readonly paint: Palette },
): string {
  const labeled = (color: (text: string) => string, word: string): string =>
    `${color(word)}${' '.repeat(Math.max(1, 11 - word.length))}${asLine(name)}`;
  switch (replayed.type) {
    case 'same':
      return `${labeled(paint.green, good)} · ${formatCount(replayed.events, 'event')}`;
    case 'different':
      return `${labeled(paint.red, 'different')} · ${asLine(replayed.reason)}`;
    case 'broken':
      return `${labeled(paint.red, 'broken')} · ${asLine(replayed.reason)}`;
    case 'no_history':
      return `${labeled(paint.yellow, 'refused')} · not a history: ${asLine(replayed.reason)}`;
  }
}

function asLine(text: string): string {
  return printable(text).replaceAll('\n', ' ');
}
