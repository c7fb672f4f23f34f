import { writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { escapeJson } from '../../core/text/hidden.js';
import { visible } from '../../core/text/summaries.js';
import { type History, decodeEvent } from '../../history/decode-event.js';
import { historyToJson } from '../../history/json.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { readWorkerPresence, noteMissingWorker } from '../hosting/note-worker.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { formatCount } from '../format/format.js';
import { WorkflowNotFoundError } from '@temporalio/client';
import { previousRunId } from '../../history/segments.js';

export interface ExportOptions {
  readonly id: string;
  /** A file instead of stdout. */
  readonly out?: string;
  /** From 1; absent: the newest one. */
  readonly segment?: number;
  readonly all?: boolean;
}

/** `export ID`: the history as Temporal's own tools write it, and as `replay` reads it. */
export const exportRun: Command<ExportOptions> = async (context, options) => {
  const { id, out, segment, all = false } = options;
  checkOptions(options);
  const opened = await openRun(context, id);
  const { client, run } = opened;
  noteMissingWorker(context, await readWorkerPresence(client, run.taskQueue), []);
  if (all) return await exportAll(context, opened, out ?? '');
  const found = segment === undefined ? newest(opened) : await segmentOf(opened, segment);
  const { runId, history } = found;
  const json = escapeJson(historyToJson(history));
  if (out === undefined) {
    context.out(json);
  } else {
    await write(out, json);
    const events = eventsOf(history);
    context.note(`${formatCount(events, 'event')} of ${visible(id)} are in ${visible(out)}`);
    if (context.options.json) context.out(JSON.stringify({ id, runId, events, file: out }));
  }
  const { number } = newest(opened);
  if (segment === undefined && number > 1) {
    context.note(
      `This is the newest of ${formatCount(number, 'segment')}; the others: --segment N, or --all`,
    );
  }
  return EXIT.completed;
};

function checkOptions({ segment, all, out }: ExportOptions): void {
  if (all && segment !== undefined) {
    throw new UsageError(`--segment ${segment} and --all: give one of the two`);
  }
  if (all && out === undefined) {
    throw new UsageError('--all: each segment is a file of its own; name them with --out FILE');
  }
  if (segment === undefined || (Number.isInteger(segment) && segment >= 1)) return;
  throw new UsageError(`--segment ${segment}: segments are counted from 1; give a whole number`);
}

function newest({ run }: OpenedRun): SegmentHistory {
  const number = run.view.state?.segments ?? 1;
  return { number, runId: run.runId, history: run.history };
}

async function segmentOf(opened: OpenedRun, wanted: number): Promise<SegmentHistory> {
  const last = newest(opened);
  if (wanted > last.number) {
    throw new UsageError(
      `--segment ${wanted}: the run has ${formatCount(last.number, 'segment')}; give 1 to ${last.number}`,
    );
  }
  for await (const segment of segmentsBack(opened, last)) {
    if (segment.number === wanted) return segment;
  }
  throw new Error(
    `the server does not keep segment ${wanted} any more; its newest is ${last.number}`,
  );
}

async function exportAll(context: CliContext, opened: OpenedRun, out: string): Promise<ExitCode> {
  const { id } = opened.run;
  const files: object[] = [];
  let oldest = Infinity;
  for await (const { number, runId, history } of segmentsBack(opened, newest(opened))) {
    const file = numbered(out, number);
    await write(file, escapeJson(historyToJson(history)));
    const events = eventsOf(history);
    context.note(
      `${formatCount(events, 'event')} of segment ${number} of ${visible(id)} are in ${visible(file)}`,
    );
    files.unshift({ segment: number, runId, events, file });
    oldest = number;
  }
  if (oldest > 1) context.note(`The server keeps nothing before segment ${oldest} any more.`);
  if (context.options.json) context.out(JSON.stringify({ id, files }));
  return EXIT.completed;
}

/** `run.json` → `run-3.json`. */
function numbered(file: string, number: number): string {
  const extension = extname(file);
  return `${file.slice(0, file.length - extension.length)}-${number}${extension}`;
}

function eventsOf({ events }: History): number {
  return events?.length ?? 0;
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, `${text}\n`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--out ${file}: cannot be written (${why}); name a file that can`, {
      cause: error,
    });
  }
}

/** The history of one segment. */
interface SegmentHistory {
  /** From 1. */
  readonly number: number;
  readonly runId: string;
  readonly history: History;
}

/** A run's segments from `last` back, as far as the server keeps them. */
async function* segmentsBack(
  { client, run }: OpenedRun,
  last: SegmentHistory,
): AsyncGenerator<SegmentHistory, void, undefined> {
  for (let segment = last; ;) {
    yield segment;
    const runId = previousRunId((segment.history.events ?? []).slice(0, 1).map(decodeEvent));
    if (runId === '') return;
    try {
      const history: History = await client.workflow.getHandle(run.id, runId).fetchHistory();
      segment = { number: segment.number - 1, runId, history };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return;
      throw error;
    }
  }
}
