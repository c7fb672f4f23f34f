import { pauseAllRuns } from '../../client/pause-all.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { formatCount } from '../format/format.js';
import { noteServer } from '../hosting/note-server.js';
import { nextCommandOf } from '../reports/next-command.js';

/** A line of progress for each so many runs. */
const PROGRESS_RUNS = 100;

/** `pause --all`: signals every running run of an agent to pause. Exits with 1 if a run was not signaled. */
export async function pauseAll(
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
    `${formatCount(signaled, 'run')} of agent ${visible(agent)} will pause as soon as a worker takes the signal.${gone}`,
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
