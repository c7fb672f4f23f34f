import { openStores } from '../../storage/file-stores.js';
import { forkRun } from '../../client/fork-run.js';
import { IdTakenError, InputError } from '../../core/errors.js';
import { runIdProblem, type StartedRun } from '../../updates/start.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { withHostedWorker } from '../hosting/with-hosted-worker.js';
import {
  inFlags,
  RUN_SETTINGS,
  runSettings,
  type RunSettingOptions,
} from '../input/run-settings.js';
import { idTakenError, openRun, requireWorker, type OpenedRun } from '../open-run.js';
import { reportStarted } from '../reports/report-pause.js';
import { followAndReport, type FollowOptions } from '../run-view/follow-and-report.js';

export interface ForkCommandOptions extends FollowOptions, RunSettingOptions {
  /** The run whose messages are copied. */
  readonly run: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly at?: number;
  /** Id of the new run. */
  readonly id?: string;
  readonly open?: boolean;
  readonly detach?: boolean;
}

/** `fork RUN MESSAGE`: starts a run with the messages of another run, and follows it. */
export const fork: Command<ForkCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<run>', 'the run to copy messages from')
        .argument('<message...>', 'the next message'),
      'at',
      'id',
      'open',
      'detach',
      'noWait',
      ...RUN_SETTINGS,
    ),
  async run(context, options) {
    const { open = false, detach = false } = options;
    const problem = options.id === undefined ? null : runIdProblem(options.id);
    if (problem !== null) throw new UsageError(`--${problem}`);
    const opened = await openRun(context, options.run, { archive: true });
    if (detach) {
      await requireWorker(context, opened, 'fork --detach');
      return await reportStarted(context, opened.run, await start(context, opened, options));
    }
    return await withHostedWorker(context, opened.run.taskQueue, async (host) => {
      const started = await start(context, opened, options);
      context.note(`run ${visible(started.id)} is forked from run ${visible(options.run)}`);
      const until = open ? { turn: 1 } : 'end';
      const run = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
      return await followAndReport(context, run, options);
    });
  },
};

async function start(
  context: CliContext,
  { client, run }: OpenedRun,
  { message, at, id, open, ...settings }: ForkCommandOptions,
): Promise<StartedRun> {
  try {
    const given = {
      message: message.join(' '),
      ...runSettings(settings),
      ...(at !== undefined && { at }),
      ...(id !== undefined && { id }),
      ...(open && { open }),
    };
    return await forkRun(client, run.id, given, openStores(context.home, context.env));
  } catch (error) {
    if (error instanceof InputError) {
      throw new UsageError(inFlags(error.message.replace(/^fork\.at:/, '--at:')), { cause: error });
    }
    if (!(error instanceof IdTakenError)) throw error;
    throw await idTakenError(context, { id: id ?? '', taskQueue: run.taskQueue }, error);
  }
}
