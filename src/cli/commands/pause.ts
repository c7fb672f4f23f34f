import { pauseRun } from '../../updates/control.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/os-user.js';
import { BY } from '../input/shared-options.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandFor, nextCommandOf } from '../reports/next-command.js';
import { pauseAllRuns } from '../../client/pause-all.js';
import { formatCount } from '../format/format.js';
import { noteServer } from '../hosting/note-server.js';

export interface PauseOptions {
  readonly id?: string;
  /** Pause every running run of the agent. */
  readonly all?: boolean;
  readonly agent?: string;
  readonly by?: string;
}

/** `pause ID`: lets calls in flight finish; the run starts nothing else until `resume`. */
export const pause: Command<PauseOptions> = {
  declare: (entry) =>
    entry
      .argument('[id]', 'the run')
      .option('--all', 'pause every running run of an agent, also without a worker; with --agent')
      .option('--agent <name>', 'the agent whose runs are paused; with --all')
      .option(...BY),
  async run(context, { id, all = false, agent, by }) {
    const actor = deciderName(by);
    if (all) {
      if (id !== undefined || agent === undefined) {
        throw new UsageError('--all: expected --agent NAME and no run; give the agent');
      }
      return await pauseAll(context, { agent, by: actor });
    }
    if (id === undefined || agent !== undefined) {
      throw new UsageError('pause: expected the id of a run, or --all --agent NAME');
    }
    return await pauseOne(context, id, actor);
  },
};

async function pauseOne(context: CliContext, id: string, by: string): Promise<ExitCode> {
  const opened = await requireOpenRun(context, id);
  const { client, run } = opened;
  await withWorker(context, opened, {
    decision: 'pause',
    send: () => pauseRun(client, id, { by }),
  });
  const wasPaused = run.view.state?.paused === true;
  const resume = await nextCommandFor(context, run, ['resume', id]);
  const state = wasPaused
    ? 'was already paused'
    : 'is pausing: calls in flight end, and nothing more is started';
  context.note(`Run ${visible(id)} ${state}. Resume it with: ${resume}`);
  if (context.options.json) context.out(JSON.stringify({ id, paused: true, wasPaused }));
  return EXIT.completed;
}

/** The number of runs after which another progress line is shown. */
const PROGRESS_RUNS = 100;

/**
 * `pause --all`: signals every running run of an agent to pause. Exits with 1 if a run was not
 * signaled.
 */
async function pauseAll(
  context: CliContext,
  { agent, by }: { readonly agent: string; readonly by: string },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const paused = await pauseAllRuns(await context.client(), {
    agent,
    by,
    onProgress: ({ signaled, failed }) => {
      if ((signaled + failed) % PROGRESS_RUNS === 0) context.note(`${signaled} runs signaled …`);
    },
  });
  const { signaled, ended, failed, error } = paused;
  const gone = ended === 0 ? '' : ` ${formatCount(ended, 'run')} ended meanwhile.`;
  context.note(
    `${formatCount(signaled, 'run')} of agent ${visible(agent)} will pause as soon as a worker processes the signal.${gone}`,
  );
  if (failed > 0) {
    const again = nextCommandOf(context, ['pause', '--all', '--agent', agent]);
    context.note(
      `${formatCount(failed, 'run')} could not be signaled (${visible(error ?? 'no reason')}). Run it again: ${again}`,
    );
  }
  if (context.options.json) context.out(JSON.stringify({ agent, ...paused }));
  return failed > 0 ? EXIT.failed : EXIT.completed;
}
