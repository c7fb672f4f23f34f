import { writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { escapeJson } from '../../core/text/hidden.js';
import { visible } from '../../core/text/summaries.js';
import { decodeEvent } from '../../history/decode-event.js';
import type { History } from '../../history/history-event.js';
import { historyToJson } from '../../history/json.js';
import type { Archive } from '../../storage/archive.js';
import { openStores } from '../../storage/file-stores.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { CommandError, EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { formatCount } from '../format/format.js';
import { previousRunId, readSegment } from '../../history/segments.js';

export interface ExportOptions {
  readonly id: string;
  /** Path of a file; absent: stdout. */
  readonly out?: string;
  /** Counted from 1; absent: the newest segment. */
  readonly segment?: number;
  readonly allSegments?: boolean;
}

/**
 * `export ID`: writes the history in the JSON format of Temporal's own tools, which `replay` reads.
 */
export const exportRun: Command<ExportOptions> = {
  declare: (entry) =>
    withOptions(entry.argument('<id>', 'the run'), 'out', 'segment', 'allSegments'),
  run: exportHistory,
};

interface Opened extends OpenedRun {
  readonly archive: Archive;
}

async function exportHistory(context: CliContext, options: ExportOptions): Promise<ExitCode> {
  const { id, out, segment, allSegments: all = false } = options;
  checkOptions(options);
  const { archive } = openStores(context.home, context.env);
  const opened = { ...(await openRun(context, id, { archive: true })), archive };
  if (all) return await exportAll(context, opened, out ?? '');
  const found =
    segment === undefined ? newestSegment(opened) : await segmentNumbered(opened, segment);
  const { runId, history } = found;
  const json = escapeJson(historyToJson(history));
  if (out === undefined) {
    context.out(json);
  } else {
    await write(out, json);
    const events = eventCount(history);
    context.note(
      `${formatCount(events, 'event')} of run ${visible(id)} written to ${visible(out)}`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, runId, events, file: out }));
  }
  const { number } = newestSegment(opened);
  if (segment === undefined && number > 1) {
    context.note(
      `This is the newest of ${formatCount(number, 'segment')}; export others with --segment N or --all-segments`,
    );
  }
  return EXIT.completed;
}

function checkOptions({ segment, allSegments: all, out }: ExportOptions): void {
  if (all && segment !== undefined) {
    throw new UsageError(`--segment: expected no --all-segments, got both; omit one of the two`);
  }
  if (all && out === undefined) {
    throw new UsageError(
      '--all-segments: expected --out FILE, got none; each segment is written to its own file',
    );
  }
  if (segment === undefined || (Number.isInteger(segment) && segment >= 1)) return;
  throw new UsageError(`--segment: expected a whole number from 1, got ${segment}`);
}

function newestSegment({ run }: Pick<OpenedRun, 'run'>): SegmentHistory {
  const number = run.view.state?.segments ?? 1;
  return { number, runId: run.runId, history: run.history };
}

async function segmentNumbered(opened: Opened, requested: number): Promise<SegmentHistory> {
  const last = newestSegment(opened);
  if (requested > last.number) {
    throw new UsageError(
      `--segment: expected 1 to ${last.number}, got ${requested}; the run has ${formatCount(last.number, 'segment')}`,
    );
  }
  for await (const segment of segmentsBack(opened, last)) {
    if (segment.number === requested) return segment;
  }
  throw new CommandError(
    'unavailable',
    `--segment: the server has deleted segment ${requested}, and the archive does not have it; the newest is ${last.number}`,
  );
}

async function exportAll(context: CliContext, opened: Opened, out: string): Promise<ExitCode> {
  const { id } = opened.run;
  const files: object[] = [];
  let oldest = Infinity;
  for await (const { number, runId, history } of segmentsBack(opened, newestSegment(opened))) {
    const file = numberedFile(out, number);
    await write(file, escapeJson(historyToJson(history)));
    const events = eventCount(history);
    context.note(
      `${formatCount(events, 'event')} of segment ${number} of run ${visible(id)} written to ${visible(file)}`,
    );
    files.unshift({ segment: number, runId, events, file });
    oldest = number;
  }
  if (oldest > 1)
    context.note(
      `The server has deleted the segments before ${oldest}, and the archive does not have them.`,
    );
  if (context.options.json) context.out(JSON.stringify({ id, files }));
  return EXIT.completed;
}

/** Turns `run.json` into `run-3.json`. */
function numberedFile(file: string, number: number): string {
  const extension = extname(file);
  return `${file.slice(0, file.length - extension.length)}-${number}${extension}`;
}

function eventCount({ events }: History): number {
  return events?.length ?? 0;
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, `${text}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--out: expected a writable file, got ${visible(file)} (${reason})`, {
      cause: error,
    });
  }
}

/** The history of one segment. */
interface SegmentHistory {
  /** Counted from 1. */
  readonly number: number;
  readonly runId: string;
  readonly history: History;
}

/** Yields the segments of a run that the server or the archive has, from `last` backward. */
async function* segmentsBack(
  { client, run, archive }: Opened,
  last: SegmentHistory,
): AsyncGenerator<SegmentHistory, void, undefined> {
  for (let segment = last; ;) {
    yield segment;
    const runId = previousRunId((segment.history.events ?? []).slice(0, 1).map(decodeEvent));
    if (runId === '') return;
    const found = await readSegment(client, { id: run.id, runId, archive });
    if (found === null) return;
    segment = { number: segment.number - 1, runId, history: found.history };
  }
}
