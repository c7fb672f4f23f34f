import { openStores } from '../../storage/file-stores.js';
import { forkRun } from '../../client/fork-run.js';
import { IdTakenError, InputError } from '../../core/errors.js';
import { runIdProblem, type StartedRun } from '../../updates/start.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { withHostedWorker } from '../hosting/with-hosted-worker.js';
import { osUser } from '../input/os-user.js';
import { parseNumber } from '../input/option-parsers.js';
import { ID, NO_WAIT, OPEN } from '../input/shared-options.js';
import { idTakenError, openRun, type OpenedRun } from '../open-run.js';
import { followAndReport } from '../run-view/follow-and-report.js';

export interface ForkCommandOptions {
  /** The run whose messages are copied. */
  readonly run: string;
  /** The words of the message. */
  readonly message: readonly string[];
  readonly at?: number;
  /** Id of the new run. */
  readonly id?: string;
  readonly open?: boolean;
  /** False for `--no-wait`. */
  readonly wait: boolean;
}

/** `fork RUN MESSAGE`: starts a run with the messages of another run, and follows it. */
export const fork: Command<ForkCommandOptions> = {
  declare: (entry) =>
    entry
      .argument('<run>', 'the run to copy messages from')
      .argument('<message...>', 'the next message')
      .option('--at <n>', 'copy only the messages before number n; default: all', parseNumber)
      .option(...ID)
      .option(...OPEN)
      .option(...NO_WAIT),
  async run(context, options) {
    const { open = false, wait } = options;
    const problem = options.id === undefined ? null : runIdProblem(options.id);
    if (problem !== null) throw new UsageError(`--${problem}`);
    const opened = await openRun(context, options.run, { archive: true });
    return await withHostedWorker(context, opened.run.taskQueue, async (host) => {
      const started = await start(context, opened, options);
      context.note(`run ${visible(started.id)} is forked from run ${visible(options.run)}`);
      const until = open ? { turn: 1 } : 'end';
      const run = { ...started, ...host, joined: null, retriedUpTo: 0, until } as const;
      return await followAndReport(context, run, { wait });
    });
  },
};

async function start(
  context: CliContext,
  { client, run }: OpenedRun,
  { message, at, id, open }: ForkCommandOptions,
): Promise<StartedRun> {
  try {
    const given = {
      message: message.join(' '),
      by: osUser(),
      ...(at !== undefined && { at }),
      ...(id !== undefined && { id }),
      ...(open && { open }),
    };
    return await forkRun(client, run.id, given, openStores(context.home, context.env));
  } catch (error) {
    if (error instanceof InputError) {
      throw new UsageError(error.message.replace(/^fork\.at:/, '--at:'), { cause: error });
    }
    if (!(error instanceof IdTakenError)) throw error;
    throw await idTakenError(context, { id: id ?? '', taskQueue: run.taskQueue }, error);
  }
}
