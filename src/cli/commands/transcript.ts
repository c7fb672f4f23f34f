import { join } from 'node:path';
import { fileArchive } from '../../storage/file-archive.js';
import { fileBlobStore } from '../../storage/file-blob-store.js';
import type { RunReading } from '../../history/read-run.js';
import { transcriptOf } from '../../history/run-transcript.js';
import { withFullText } from '../../history/transcript.js';
import { isSide } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { dialogue, type SegmentMark } from '../run-view/dialogue.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { readWorkerPresence, noteMissingWorker } from '../hosting/note-worker.js';
import { openRun } from '../open-run.js';
import { dataPalette } from '../format/table.js';
import { formatCount } from '../format/format.js';

export interface TranscriptOptions {
  readonly id: string;
  /** First message, from 0. */
  readonly from?: number;
  /** First message not wanted any more. */
  readonly to?: number;
  /** Cut nothing, and fetch what lies in the blob store. */
  readonly full?: boolean;
  /** Answers that were refused, too. */
  readonly side?: boolean;
}

/** `transcript ID`: the messages of a run, from its histories and the archive; needs no worker. */
export const transcript: Command<TranscriptOptions> = async (context, options) => {
  const { id, from, to, full = false, side = false } = options;
  checkRange({ '--from': from, '--to': to });
  const { client, run } = await openRun(context, id);
  noteMissingWorker(context, await readWorkerPresence(client, run.taskQueue), []);
  const archive = fileArchive(join(context.home, 'archive'));
  const told = await transcriptOf(client, id, { archive, from, to, side: true });
  const { total } = told;
  const messages = side ? told.messages : told.messages.filter((message) => !isSide(message));
  const hidden = told.messages.length - messages.length;
  const blobs = fileBlobStore(join(context.home, 'blobs'));
  const shown = full
    ? await withFullText(messages, blobs, (why) => context.note(`shown in part: ${why}`))
    : messages;
  if (run.view.state === null) {
    context.note(
      `The run has no messages: ${run.view.ended ? 'it never began' : 'it has not begun'}.`,
    );
  }
  if (context.options.json) {
    context.out(JSON.stringify({ messages: shown, total }));
  } else {
    const lines = { full, paint: dataPalette(context), segment: segmentOf(run) };
    for (const line of dialogue(shown, lines)) context.out(line);
    if (told.messages.length < total) {
      context.note(`${shown.length} of the ${total} messages of ${visible(id)}`);
    }
    const { forkedFrom } = run.view.state ?? {};
    if (forkedFrom !== undefined && (from ?? 0) < forkedFrom.at) {
      context.note(
        `The messages before #${forkedFrom.at} are those of ${visible(forkedFrom.run)}, from which this run was forked`,
      );
    }
    if (hidden > 0) {
      context.note(
        `Not shown: ${formatCount(hidden, 'message')} about refused answers; --side shows them`,
      );
    }
  }
  if (told.completeFrom > (from ?? 0)) {
    context.note(
      `Of the messages before ${told.completeFrom} some are missing: the server does not keep them any more, and the archive in ${context.home} does not have them.`,
    );
  }
  return EXIT.completed;
};

/** Where the newest segment begins, for a run that has several. */
function segmentOf({ view }: RunReading): SegmentMark | undefined {
  const { segments = 1, segmentFrom } = view.state ?? {};
  if (segmentFrom === undefined || segments === 1) return undefined;
  return { number: segments, from: segmentFrom.message };
}

function checkRange(range: Readonly<Record<string, number | undefined>>): void {
  for (const [option, value] of Object.entries(range)) {
    if (value === undefined || (Number.isInteger(value) && value >= 0)) continue;
    throw new UsageError(`${option} ${value}: messages are counted from 0; give a whole number`);
  }
}
