import { signalAllRuns } from '../../client/control.js';
import { visible } from '../../core/state/summaries.js';
import { type CliContext, EXIT, UsageError, type ExitCode } from '../context.js';
import { formatCount } from '../format/format.js';
import { deciderName } from '../input/option-parsers.js';
import { nextCommandOf } from '../reports/next-command.js';
import { noteServer } from './server-notes.js';

/** The options of `pause` and `resume`. */
export interface ControlOptions {
  readonly id?: string;
  /** Signal every running run of the agent. */
  readonly all?: boolean;
  readonly agent?: string;
  readonly by?: string;
}

type Control = 'pause' | 'resume';

/** Controls the run that the options name, or with `--all` every running run of an agent. */
export async function controlRuns(
  context: CliContext,
  what: Control,
  { id, all = false, agent, by }: ControlOptions,
  controlOne: (context: CliContext, id: string, by: string) => Promise<ExitCode>,
): Promise<ExitCode> {
  const actor = deciderName(by);
  if (all) {
    if (id !== undefined || agent === undefined) {
      throw new UsageError('--all: expected --agent NAME and no run; give the agent');
    }
    return await controlAll(context, what, { agent, by: actor });
  }
  if (id === undefined || agent !== undefined) {
    throw new UsageError(`${what}: expected the id of a run, or --all --agent NAME`);
  }
  return await controlOne(context, id, actor);
}

/** The number of runs after which another progress line is shown. */
const PROGRESS_RUNS = 100;

/** Signals every running run of an agent. Exits with 1 if a run was not signaled. */
async function controlAll(
  context: CliContext,
  what: Control,
  { agent, by }: { readonly agent: string; readonly by: string },
): Promise<ExitCode> {
  noteServer(context, await context.server());
  const result = await signalAllRuns(await context.client(), what, {
    agent,
    by,
    onProgress: ({ signaled, failed }) => {
      if ((signaled + failed) % PROGRESS_RUNS === 0) context.note(`${signaled} runs signaled …`);
    },
  });
  const { signaled, ended, failed, error } = result;
  const gone = ended === 0 ? '' : ` ${formatCount(ended, 'run')} ended meanwhile.`;
  const when = 'as soon as a worker processes the signal';
  context.note(
    `${formatCount(signaled, 'run')} of agent ${visible(agent)} will ${what} ${when}.${gone}`,
  );
  if (failed > 0) {
    const again = nextCommandOf(context, [what, '--all', '--agent', agent]);
    context.note(
      `${formatCount(failed, 'run')} could not be signaled (${visible(error ?? 'no reason')}). Run it again: ${again}`,
    );
  }
  if (context.options.json) context.out(JSON.stringify({ agent, ...result }));
  return failed > 0 ? EXIT.failed : EXIT.completed;
}
