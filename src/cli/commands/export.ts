import { writeFile } from 'node:fs/promises';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { visible } from '../../core/summaries.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { lookForWorker, noteAbsence } from '../note-worker.js';
import { openRun } from '../open-run.js';
import { count } from '../words.js';

export interface ExportOptions {
  readonly id: string;
  /** A file instead of stdout. */
  readonly out?: string;
}

/** `export ID`: the history as Temporal's own tools write it, and as `replay` reads it. */
export const exportRun: Command<ExportOptions> = async (context, { id, out }) => {
  const { client, run } = await openRun(context, id);
  noteAbsence(context, await lookForWorker(client, run.taskQueue), []);
  const json = historyToJSON(run.history);
  if (out === undefined) {
    context.out(json);
    return EXIT.completed;
  }
  await write(out, json);
  const events = run.facts.length;
  context.say(`${count(events, 'event')} of ${visible(id)} are in ${out}`);
  if (context.options.json)
    context.out(JSON.stringify({ id, runId: run.runId, events, file: out }));
  return EXIT.completed;
};

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
