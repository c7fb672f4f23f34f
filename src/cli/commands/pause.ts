import { pauseRun } from '../../updates/control.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../decision.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { nextCommandFor } from '../open-run.js';

/** `pause ID`: what is in flight ends, and nothing more is started until `resume`. */
export const pause: Command<{ readonly id: string }> = async (context, { id }) => {
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  await withWorker(context, opened, {
    decision: 'pause',
    say: () => pauseRun(client, id, { by: osUser() }),
  });
  const wasPaused = run.view.state?.paused === true;
  const goOn = await nextCommandFor(context, run, ['resume', id]);
  const what = wasPaused
    ? 'is paused already'
    : 'pauses: what is in flight ends, nothing more is started';
  context.note(`Run ${visible(id)} ${what}. Let it go on with: ${goOn}`);
  if (context.options.json) context.out(JSON.stringify({ id, paused: true, wasPaused }));
  return EXIT.completed;
};
