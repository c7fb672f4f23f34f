import { closeRun } from '../../updates/control.js';
import { nextTarget } from '../../history/follow-target.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../decision.js';
import { EXIT } from '../exit-codes.js';
import { followWithin } from '../run-view/follow-within.js';
import { withWorker } from '../hosting/with-worker.js';
import { nextCommandFor } from '../open-run.js';

const END_WITHIN_MS = 10_000;

/** `close ID`: an open run takes no more messages, and ends when it is done with those it has. */
export const close: Command<{ readonly id: string }> = async (context, { id }) => {
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  const idle = nextTarget(run.view) === null && run.view.state?.paused !== true;
  const say = async (): Promise<boolean> => {
    await closeRun(client, id, { by: osUser() });
    return idle && (await followWithin(opened, 'end', { ms: END_WITHIN_MS })) !== null;
  };
  const ended = await withWorker(context, opened, { decision: 'close', say });
  const see = await nextCommandFor(context, run, [ended ? 'transcript' : 'attach', id]);
  context.note(
    ended
      ? `Run ${visible(id)} is closed. What was said: ${see}`
      : `Run ${visible(id)} takes no more messages, and ends when it is done with those it has. Follow it with: ${see}`,
  );
  if (context.options.json) context.out(JSON.stringify({ id, closing: true, ended }));
  return EXIT.completed;
};
