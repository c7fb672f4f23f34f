import { join } from 'node:path';
import { fileBlobStore } from '../../blobs/file-blob-store.js';
import { inFull, transcriptFrom } from '../../client/transcript.js';
import { visible } from '../../core/summaries.js';
import type { Command } from '../command.js';
import { dialogue } from '../dialogue.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { lookForWorker, noteAbsence } from '../note-worker.js';
import { openRun } from '../open-run.js';
import { dataPalette } from '../table.js';

export interface TranscriptOptions {
  readonly id: string;
  /** First message, from 0. */
  readonly from?: number;
  /** First message not wanted any more. */
  readonly to?: number;
  /** Cut nothing, and fetch what lies in the blob store. */
  readonly full?: boolean;
}

/** `transcript ID`: the messages of a run, from its history; needs no worker. */
export const transcript: Command<TranscriptOptions> = async (context, options) => {
  const { id, from, to, full = false } = options;
  checkRange({ '--from': from, '--to': to });
  const { client, run } = await openRun(context, id);
  noteAbsence(context, await lookForWorker(client, run.taskQueue), []);
  const { messages, total } = transcriptFrom(run, { from, to });
  const blobs = fileBlobStore(join(context.home, 'blobs'));
  const shown = full
    ? await inFull(messages, blobs, (why) => context.say(`shown in part: ${why}`))
    : messages;
  if (run.view.state === null) {
    context.say(
      `The run has no messages: ${run.view.ended ? 'it never began' : 'it has not begun'}.`,
    );
  }
  if (context.options.json) {
    context.out(JSON.stringify({ messages: shown, total }));
    return EXIT.completed;
  }
  for (const line of dialogue(shown, { full, paint: dataPalette(context) })) context.out(line);
  if (shown.length < total) {
    context.say(`${shown.length} of the ${total} messages of ${visible(id)}`);
  }
  return EXIT.completed;
};

function checkRange(range: Readonly<Record<string, number | undefined>>): void {
  for (const [option, value] of Object.entries(range)) {
    if (value === undefined || (Number.isInteger(value) && value >= 0)) continue;
    throw new UsageError(`${option} ${value}: messages are counted from 0; give a whole number`);
  }
}
