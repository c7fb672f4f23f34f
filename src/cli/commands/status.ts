import { toRunStatus } from '../../client/status.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withDiskCheck } from '../hosting/full-disk.js';
import { nextSteps } from '../reports/next-steps.js';
import { readWorkerPresence, noteMissingWorker } from '../hosting/note-worker.js';
import { nextCommandFor, openRun } from '../open-run.js';
import { uiLink } from '../reports/run-header.js';
import { statusLines } from '../run-view/status-lines.js';
import { dataPalette } from '../format/table.js';

/** `status ID`: how a run stands, from what the server knows; needs no worker. */
export const status: Command<{ readonly id: string }> = async (context, options) =>
  await withDiskCheck(context, () => show(context, options));

const show: Command<{ readonly id: string }> = async (context, { id }) => {
  const { client, run } = await openRun(context, id);
  const now = Date.now();
  const found = toRunStatus(run, now);
  const worker = await readWorkerPresence(client, run.taskQueue);
  const cures = found.status === 'done' ? [] : [await nextCommandFor(context, run, ['worker'])];
  noteMissingWorker(context, worker, cures);
  if (context.options.json) {
    context.out(JSON.stringify(found));
    return EXIT.completed;
  }
  const next = await nextSteps(context, { run, status: found, isUp: worker.isUp });
  const link = uiLink(await context.server(), id);
  const view = { run, status: found, worker: worker.text, link, next, now };
  for (const line of statusLines(view, dataPalette(context))) context.out(line);
  return EXIT.completed;
};
