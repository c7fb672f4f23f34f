import { isGrpcServiceError } from '@temporalio/client';
import { matchingRuns, createSkipCounts, type SkipCounts } from '../../history/matching-runs.js';
import { visible } from '../../core/text/summaries.js';
import type { Replayed } from '../../worker/replay.js';
import { nextCommand } from '../reports/next-command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { noteServer } from '../hosting/note-server.js';
import { replayLine } from '../reports/replay-lines.js';
import { dataPalette } from '../format/table.js';
import { formatCount } from '../format/format.js';

/** The runs that a new build would have to go on with. */
export const LIVE_RUNS = "ExecutionStatus = 'Running' AND WorkflowType = 'agent'";

const PROGRESS_EVERY = 100;
/** Of gRPC: what a server says to a query that it does not understand. */
const INVALID_ARGUMENT = 3;

type Row = Replayed & { readonly id: string; readonly runId: string; readonly ok: boolean };

/** Replays what the server holds of the runs that a visibility query finds, with this version's code. */
export async function replayFromServer(
  context: CliContext,
  wish: { readonly query: string; readonly limit: number },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const client = await context.client();
  const { replayRuns } = await import('../../worker/replay.js');
  const how = { good: 'same', paint: dataPalette(context) };
  const { json } = context.options;
  const passedOver = createSkipCounts();
  const rows: Row[] = [];
  context.note(`Replays the runs that match: ${visible(wish.query)}`);
  try {
    for await (const { run, replayed } of replayRuns(matchingRuns(client, wish, passedOver))) {
      const { id, runId } = run;
      rows.push({ id, runId, ok: replayed.type === 'same', ...replayed });
      if (!json) context.out(replayLine(id, replayed, how));
      if (rows.length % PROGRESS_EVERY === 0) context.note(`${formatCount(rows.length, 'run')} so far`);
    }
  } catch (error) {
    throw asUsage(error, context, wish.query);
  }
  const counts = countsOf(rows);
  if (json) {
    const { more } = passedOver;
    context.out(JSON.stringify({ query: wish.query, ...counts, more, runs: rows }));
  }
  for (const note of notes(passedOver, wish.limit)) context.note(note);
  context.note(closing(rows.length, counts));
  return counts.same === rows.length ? EXIT.completed : EXIT.failed;
}

interface Counts {
  readonly same: number;
  readonly different: number;
  readonly broken: number;
}

function countsOf(rows: readonly Row[]): Counts {
  const of = (type: Replayed['type']): number => rows.filter((row) => row.type === type).length;
  return { same: of('same'), different: of('different'), broken: of('broken') };
}

function closing(total: number, { same, different, broken }: Counts): string {
  if (total === 0) return 'No run matches, so nothing was replayed.';
  const parts = [`${same} same`, `${different} different`, `${broken} broken`];
  const verdict = same === total ? 'this build can go on with them' : 'do not let this build in';
  return `${formatCount(total, 'run')}: ${parts.join(', ')}; ${verdict}.`;
}

function notes({ others, earlier, gone, more }: SkipCounts, limit: number): readonly string[] {
  const types = [...others].map(([type, number]) => `${visible(type)} (${number})`).join(', ');
  return [
    ...(others.size > 0 ? [`Passed over, no runs of agents: workflows of type ${types}`] : []),
    ...(earlier > 0
      ? [`Passed over: ${formatCount(earlier, 'segment')} that a run has left behind`]
      : []),
    ...(gone > 0 ? [`Passed over: ${formatCount(gone, 'run')} that the server no longer has`] : []),
    ...(more
      ? [`Cut after ${formatCount(limit, 'run')}, there are more; see more with --limit ${2 * limit}`]
      : []),
  ];
}

function asUsage(error: unknown, context: CliContext, query: string): unknown {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const refusal = [error, cause].find((each) => isGrpcServiceError(each));
  const code: number | undefined = refusal?.code;
  if (refusal === undefined || code !== INVALID_ARGUMENT) return error;
  const doctor = nextCommand(context, 'doctor');
  return new UsageError(
    `--from-server ${visible(query)}: the server does not understand it: ${visible(refusal.details)}; ` +
      `give a query of Temporal's visibility, such as ${LIVE_RUNS}, or AgentStatus = 'working' ` +
      `where the namespace has that attribute (${doctor} tells)`,
    { cause: error },
  );
}
