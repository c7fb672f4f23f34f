import type { Archive } from '../../storage/archive.js';
import { openStores } from '../../storage/file-stores.js';
import type { RunReading } from '../../history/read-run.js';
import { readTranscript } from '../../history/run-transcript.js';
import { withFullText } from '../../history/transcript.js';
import { readTurns } from '../../history/turn-log.js';
import { callPairs } from '../../core/transcript/call-pairs.js';
import { isSide, type Message } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { dialogue, pairLines, type SegmentMark } from '../run-view/dialogue.js';
import { turnLines } from '../run-view/turn-lines.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { dataPalette } from '../format/table.js';
import { formatCount } from '../format/format.js';

export interface TranscriptOptions {
  readonly id: string;
  /** Number of the first message, from 0. */
  readonly from?: number;
  /** Number of the message to stop before. */
  readonly until?: number;
  /** Truncate nothing, and fetch large texts from the blob store. */
  readonly full?: boolean;
  /** Include refused answers. */
  readonly side?: boolean;
  /** Print the calls with their results instead of the messages. */
  readonly calls?: boolean;
  /** Print the turns instead of the messages. */
  readonly turns?: boolean;
}

/**
 * `transcript ID`: prints the messages of a run from its histories and the archive. Needs no
 * worker.
 */
export const transcript: Command<TranscriptOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run'),
      'from',
      'until',
      'side',
      'full',
      'calls',
      'turns',
    ),
  run: printTranscript,
};

async function printTranscript(context: CliContext, options: TranscriptOptions): Promise<ExitCode> {
  const { id, from, until: to, turns = false } = options;
  checkRange({ '--from': from, '--until': to });
  checkView(options);
  const opened = await openRun(context, id, { archive: true });
  const { archive } = openStores(context.home, context.env);
  if (turns) return await printTurns(context, opened, archive);
  return await printMessages(context, { ...opened, archive }, options);
}

async function printTurns(
  context: CliContext,
  { client, run }: OpenedRun,
  archive: Archive,
): Promise<ExitCode> {
  const log = await readTurns(client, run, archive);
  if (context.options.json) context.out(JSON.stringify(log));
  else for (const line of turnLines(log.turns, dataPalette(context))) context.out(line);
  if (log.incomplete) {
    context.note(
      `Some turns are missing: the server has deleted them, and the archive in ${context.home} does not have them.`,
    );
  }
  return EXIT.completed;
}

async function printMessages(
  context: CliContext,
  { client, run, archive }: OpenedRun & { readonly archive: Archive },
  options: TranscriptOptions,
): Promise<ExitCode> {
  const { id, from, until: to, full = false, side = false, calls = false } = options;
  // The result of a call may be outside the range.
  const end = calls ? undefined : to;
  const read = await readTranscript(client, run, { archive, from, to: end, side: true });
  const { total } = read;
  const messages = side ? read.messages : read.messages.filter((message) => !isSide(message));
  const hidden = read.messages.length - messages.length;
  const { blobs } = openStores(context.home, context.env);
  const shown = full
    ? await withFullText(messages, blobs, (reason) => context.note(`shown in part: ${reason}`))
    : messages;
  if (run.view.state === null) {
    context.note(
      `The run has no messages: it ${run.view.ended ? 'never started' : 'has not started'}.`,
    );
  }
  if (calls) {
    printCalls(context, shown, { to, full });
  } else if (context.options.json) {
    context.out(JSON.stringify({ messages: shown, total }));
  } else {
    const lines = { full, paint: dataPalette(context), segment: segmentMark(run) };
    for (const line of dialogue(shown, lines)) context.out(line);
    if (read.messages.length < total) {
      context.note(`${shown.length} of the ${total} messages of run ${visible(id)}`);
    }
    const { forkedFrom } = run.view.state ?? {};
    if (forkedFrom !== undefined && (from ?? 0) < forkedFrom.at) {
      context.note(
        `The messages before #${forkedFrom.at} come from run ${visible(forkedFrom.run)}, from which this run was forked`,
      );
    }
    if (hidden > 0) {
      context.note(
        `${formatCount(hidden, 'message')} about refused answers not shown; show them with --side`,
      );
    }
  }
  if (read.completeFrom > (from ?? 0)) {
    context.note(
      `Some messages before #${read.completeFrom} are missing: the server has deleted them, and the archive in ${context.home} does not have them.`,
    );
  }
  return EXIT.completed;
}

function printCalls(
  context: CliContext,
  messages: readonly Message[],
  { to = Infinity, full }: { readonly to: number | undefined; readonly full: boolean },
): void {
  const calls = callPairs(messages).filter(({ n }) => n < to);
  if (context.options.json) return context.out(JSON.stringify({ calls }));
  if (calls.length === 0) context.note('No tool calls in these messages.');
  for (const line of pairLines(calls, { full, paint: dataPalette(context) })) context.out(line);
}

/** Returns where the newest segment begins; undefined if the run has only one segment. */
function segmentMark({ view }: RunReading): SegmentMark | undefined {
  const { segments = 1, segmentFrom } = view.state ?? {};
  if (segmentFrom === undefined || segments === 1) return undefined;
  return { number: segments, from: segmentFrom.message };
}

function checkRange(range: Readonly<Record<string, number | undefined>>): void {
  for (const [option, value] of Object.entries(range)) {
    if (value === undefined || (Number.isInteger(value) && value >= 0)) continue;
    throw new UsageError(`${option}: expected a whole number from 0, got ${value}`);
  }
}

/** Throws a `UsageError` for options that have no effect with `--calls` or `--turns`. */
function checkView({ calls, turns, from, until: to, full, side }: TranscriptOptions): void {
  if (calls) expectNone('--calls', { '--turns': turns, '--side': side });
  if (turns)
    expectNone('--turns', { '--from': from, '--until': to, '--full': full, '--side': side });
}

function expectNone(option: string, others: Readonly<Record<string, unknown>>): void {
  for (const [other, value] of Object.entries(others)) {
    if (value === undefined || value === false) continue;
    throw new UsageError(`${option}: expected no ${other}, got both; omit one of the two`);
  }
}
