import { pauseRun } from '../../updates/control.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { controlRuns, type ControlOptions } from '../hosting/control-runs.js';

/** `pause ID`: lets calls in flight finish; the run starts nothing else until `resume`. */
export const pause: Command<ControlOptions> = {
  declare: (entry) => withOptions(entry.argument('[id]', 'the run'), 'all', 'agent', 'by'),
  run: async (context, options) => await controlRuns(context, 'pause', options, pauseOne),
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
