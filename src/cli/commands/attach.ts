import { endOfRun } from '../../history/end-of-run.js';
import { nextTarget } from '../../history/follow-target.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { awaitWorker, withHostedWorker } from '../hosting/with-hosted-worker.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { reportEnd } from '../reports/report-end.js';
import { openLines } from '../reports/report-pause.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';

export interface AttachOptions extends FollowOptions {
  readonly id: string;
}

/**
 * `attach ID`: follows a run from where it stands, an open one to the end of its turn, and works on
 * it when nobody else does.
 */
export const attach: Command<AttachOptions> = async (context, options) => {
  const { id } = options;
  const opened = await openRun(context, id);
  const { runId, taskQueue, view: joined } = opened.run;
  if (endOfRun(opened.run) !== null) return await reportEnd(context, opened.run);
  const until = nextTarget(joined);
  if (until === null) return await waitsForMessage(context, opened);
  return await withHostedWorker(context, taskQueue, async (host) => {
    const retriedUpTo = await awaitWorker(opened, host);
    return await followAndReport(context, { id, runId, joined, until, retriedUpTo, ...host }, options);
  });
};

/** There is nothing to follow, and nothing to work on. */
async function waitsForMessage(context: CliContext, { run }: OpenedRun): Promise<ExitCode> {
  const { id, runId, view } = run;
  const paused = view.state?.paused === true;
  context.note(
    `Run ${visible(id)} ${paused ? 'is paused, and waits' : 'waits'} for a message; its last turn is ${view.state?.turn.number ?? 0}.`,
  );
  for (const line of await openLines(context, run)) context.note(line);
  const status = paused ? 'paused' : 'waiting_message';
  if (context.options.json) context.out(JSON.stringify({ id, runId, status, reason: null }));
  return EXIT.waiting;
}
