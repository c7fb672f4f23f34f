import { visible } from '../../core/text/summaries.js';
import { requestUndo } from '../../updates/decide.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { deciderName } from '../input/os-user.js';
import { requireOpenRun, requireWorker } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';

export interface UndoOptions {
  readonly id: string;
  readonly call?: string;
  readonly by?: string;
}

/**
 * `undo ID [CALL]`: undoes a call with its tool's `undo`; without CALL, undoes the last call that
 * can be undone.
 */
export const undo: Command<UndoOptions> = {
  declare: (entry) =>
    withOptions(
      entry
        .argument('<id>', 'the run')
        .argument('[call]', 'the call, as status shows it; default: the last that can be undone'),
      'by',
    ),
  async run(context, { id, call, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, id);
    // The undo itself also needs a worker, and a worker in this process would end before it.
    await requireWorker(context, opened, 'undo');
    const given = { by: actor, ...(call !== undefined && { call }) };
    const undoing = await requestUndo(opened.client, id, given);
    const see = await nextCommandFor(context, opened.run, ['status', id]);
    context.note(
      `Call ${visible(undoing)} of run ${visible(id)} is being undone. See the result with: ${see}`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, undoing }));
    return EXIT.completed;
  },
};
