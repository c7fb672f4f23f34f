import { pauseRun } from '../../updates/control.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';

/** `pause ID`: calls in flight end, and the run starts nothing more until `resume`. */
export const pause: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument('<id>', 'the run'),
  async run(context, { id }) {
    const opened = await openLivingRun(context, id);
    const { client, run } = opened;
    await withWorker(context, opened, {
      decision: 'pause',
      send: () => pauseRun(client, id, { by: osUser() }),
    });
    const wasPaused = run.view.state?.paused === true;
    const resume = await nextCommandFor(context, run, ['resume', id]);
    const state = wasPaused
      ? 'was already paused'
      : 'is pausing: calls in flight end, and nothing more is started';
    context.note(`Run ${visible(id)} ${state}. Resume it with: ${resume}`);
    if (context.options.json) context.out(JSON.stringify({ id, paused: true, wasPaused }));
    return EXIT.completed;
  },
};
