import { closeRun } from '../../updates/control.js';
import { nextTarget } from '../../history/follow-target.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/os-user.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { followWithin } from '../run-view/follow-within.js';

const END_WITHIN_MS = 10_000;

/** `close ID`: an open run accepts no more messages and ends after those it already has. */
export const close: Command<{ readonly id: string; readonly by?: string }> = {
  declare: (entry) => withOptions(entry.argument('<id>', 'the open run'), 'by'),
  async run(context, { id, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, id);
    const { client, run } = opened;
    const isIdle = nextTarget(run.view) === null && run.view.state?.paused !== true;
    const send = async (): Promise<boolean> => {
      await closeRun(client, id, { by: actor });
      return isIdle && (await followWithin(opened, 'end', { ms: END_WITHIN_MS })) !== null;
    };
    const ended = await withWorker(context, opened, { decision: 'close', send });
    const see = await nextCommandFor(context, run, [ended ? 'transcript' : 'attach', id]);
    context.note(
      ended
        ? `Run ${visible(id)} is closed. Read its messages with: ${see}`
        : `Run ${visible(id)} accepts no more messages and ends after the messages it already has. Follow it with: ${see}`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, closing: true, ended }));
    return EXIT.completed;
  },
};
