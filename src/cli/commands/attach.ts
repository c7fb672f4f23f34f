import { endOfRun } from '../../history/end-of-run.js';
import { nextTarget } from '../../history/follow-target.js';
import type { RunStatusName } from '../../core/status.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { awaitWorker, withHostedWorker } from '../hosting/with-hosted-worker.js';
import { openRun, type OpenedRun } from '../open-run.js';
import { reportEnd } from '../reports/report-end.js';
import { openLines } from '../reports/report-pause.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';

export interface AttachCommandOptions extends FollowOptions {
  readonly id: string;
}

/**
 * `attach ID`: follows a run from its current state until it ends, or an open run until its turn
 * ends. Hosts a worker if none is running.
 */
export const attach: Command<AttachCommandOptions> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the run'), 'noWait', 'ui'),
  async run(context, options) {
    const { id } = options;
    const opened = await openRun(context, id);
    const { runId, taskQueue, view: joined } = opened.run;
    if (endOfRun(opened.run) !== null) return await reportEnd(context, opened.run);
    const until = nextTarget(joined);
    if (until === null) return await reportIdle(context, opened);
    return await withHostedWorker(context, taskQueue, async (host) => {
      const retriedUpTo = await awaitWorker(opened, host);
      const run = { id, runId, joined, until, retriedUpTo, ...host };
      return await followAndReport(context, run, options);
    });
  },
};

/** Reports an open run that waits for a message: there is nothing to follow. */
async function reportIdle(context: CliContext, { run }: OpenedRun): Promise<ExitCode> {
  const { id, runId, view } = run;
  const paused = view.state?.paused === true;
  const state = paused ? 'is paused and waits' : 'waits';
  const turn = view.state?.turn.number ?? 0;
  context.note(`Run ${visible(id)} ${state} for a message; its last turn is ${turn}.`);
  for (const line of await openLines(context, run)) context.note(line);
  const status: RunStatusName = paused ? 'paused' : 'waiting_message';
  if (context.options.json) context.out(JSON.stringify({ id, runId, status, reason: null }));
  return EXIT.waiting;
}
