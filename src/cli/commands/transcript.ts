import { join } from 'node:path';
import { fileArchive } from '../../storage/file-archive.js';
import { fileBlobStore } from '../../storage/file-blob-store.js';
import type { RunReading } from '../../history/read-run.js';
import { readTranscript } from '../../history/run-transcript.js';
import { withFullText } from '../../history/transcript.js';
import { isSide } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { dialogue, type SegmentMark } from '../run-view/dialogue.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { readWorkerPresence, noteMissingWorker } from '../hosting/note-worker.js';
import { parseNumber } from '../input/option-parsers.js';
import { openRun } from '../open-run.js';
import { dataPalette } from '../format/table.js';
import { formatCount } from '../format/format.js';

export interface TranscriptOptions {
  readonly id: string;
  /** Number of the first message, from 0. */
  readonly from?: number;
  /** Number of the message to stop before. */
  readonly to?: number;
  /** Cut nothing, and fetch large texts from the blob store. */
  readonly full?: boolean;
  /** Include refused answers. */
  readonly side?: boolean;
}

/** `transcript ID`: prints the messages of a run from its histories and the archive. Needs no worker. */
export const transcript: Command<TranscriptOptions> = {
  declare: (entry) =>
    entry
      .argument('<id>', 'the run')
      .option('--from <n>', 'first message, counted from 0', parseNumber)
      .option('--to <n>', 'stop before this message', parseNumber)
      .option('--side', 'include refused answers and what the model was told about them')
      .option('--full', 'cut nothing; fetch large texts from the blob store'),
  run: printTranscript,
};

async function printTranscript(context: CliContext, options: TranscriptOptions): Promise<ExitCode> {
  const { id, from, to, full = false, side = false } = options;
  checkRange({ '--from': from, '--to': to });
  const { client, run } = await openRun(context, id);
  noteMissingWorker(context, await readWorkerPresence(client, run.taskQueue), []);
  const archive = fileArchive(join(context.home, 'archive'));
  const read = await readTranscript(client, id, { archive, from, to, side: true });
  const { total } = read;
  const messages = side ? read.messages : read.messages.filter((message) => !isSide(message));
  const hidden = read.messages.length - messages.length;
  const blobs = fileBlobStore(join(context.home, 'blobs'));
  const shown = full
    ? await withFullText(messages, blobs, (reason) => context.note(`shown in part: ${reason}`))
    : messages;
  if (run.view.state === null) {
    context.note(
      `The run has no messages: it ${run.view.ended ? 'never started' : 'has not started'}.`,
    );
  }
  if (context.options.json) {
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
        `The messages before #${forkedFrom.at} are those of run ${visible(forkedFrom.run)}, from which this run was forked`,
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

/** Returns where the newest segment begins; undefined if the run has one segment. */
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
