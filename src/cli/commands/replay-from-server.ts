import { isGrpcServiceError } from '@temporalio/client';
import { GRPC, grpcCode } from '../../temporal/grpc.js';
import { matchingRuns, createSkipCounts, type SkipCounts } from '../../history/matching-runs.js';
import { visible } from '../../core/text/summaries.js';
import type { ReplayResult } from '../../worker/replay.js';
import { nextCommand } from '../reports/next-command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { OPEN_RUNS_QUERY } from '../doctor/open-runs.js';
import { noteServer } from '../hosting/note-server.js';
import { replayLine } from '../reports/replay-lines.js';
import { dataPalette } from '../format/table.js';
import { formatCount } from '../format/format.js';

const PROGRESS_EVERY = 100;

type Row = ReplayResult & { readonly id: string; readonly runId: string; readonly ok: boolean };

/** Replays the histories of the runs that match a visibility query, with this version's code. */
export async function replayFromServer(
  context: CliContext,
  request: { readonly query: string; readonly limit: number },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const client = await context.client();
  const { replayRuns } = await import('../../worker/replay.js');
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
