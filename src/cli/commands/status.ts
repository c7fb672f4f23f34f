import { readStatus } from '../../client/status-below.js';
import type { OpenRequest } from '../../client/memo-requests.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { withDiskCheck } from '../hosting/full-disk.js';
import { nextSteps } from '../reports/next-steps.js';
import { needsWorker, noteMissingWorker, readWorkerPresence } from '../hosting/note-worker.js';
import { openRun } from '../open-run.js';
import { nextCommandFor, nextCommandAbout } from '../reports/next-command.js';
import { uiLink } from '../reports/run-header.js';
import { statusLines } from '../run-view/status-lines.js';
import { dataPalette } from '../format/table.js';
import { inboxLines } from '../requests/inbox-lines.js';
import { columnsOf, shownRequest } from '../requests/show-request.js';

/** `status ID`: shows the status of a run as the server has recorded it. Needs no worker. */
export const status: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument('<id>', 'the run'),
  run: async (context, { id }) => await withDiskCheck(context, () => showStatus(context, id)),
};

async function showStatus(context: CliContext, id: string): Promise<ExitCode> {
  const { client, run } = await openRun(context, id, { archive: true });
  const now = Date.now();
  const found = await readStatus(client, run, now);
  const { archived } = found;
  const worker = await readWorkerPresence(client, run.taskQueue);
  if (!archived && needsWorker(found)) {
    noteMissingWorker(context, worker, await nextCommandFor(context, run, ['worker']));
  }
  if (context.options.json) {
    context.out(JSON.stringify(found));
    return EXIT.completed;
  }
  const next = await nextSteps(context, { run, status: found, hasWorker: worker.isUp }, now);
  const link = archived ? null : uiLink(await context.server(), id);
  const view = { run, status: found, worker: worker.text, link, next, now };
  for (const line of statusLines(view, dataPalette(context))) context.out(line);
  for (const request of found.pending) {
    context.out('');
    const lines = await shownRequest(context, { run, request }, { to: 'stdout' });
    for (const line of lines) context.out(line);
  }
  const { below = [] } = found;
  if (below.length > 0) {
    context.out('');
    context.out('A run that this run called is waiting for a decision; decide in that run:');
    const show = (one: OpenRequest) => nextCommandAbout(context, ['inbox', one.run, one.id]);
    const lines = inboxLines(below, { width: columnsOf('stdout'), now, show });
    for (const line of lines) context.out(line);
  }
  return EXIT.completed;
}
