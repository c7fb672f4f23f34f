import { visible } from '../../core/text/summaries.js';
import { revokeGrant } from '../../updates/decide.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { deciderName } from '../input/os-user.js';
import { requireOpenRun } from '../open-run.js';

export interface RevokeOptions {
  readonly id: string;
  readonly grant: string;
  readonly by?: string;
}

/** `revoke ID GRANT`: ends an approval that covers later calls. */
export const revoke: Command<RevokeOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<id>', 'the run').argument('<grant>', 'the grant, as status shows it'),
      'by',
    ),
  async run(context, { id, grant, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(context, id);
    const revoked = await withWorker(context, opened, {
      decision: 'revoke',
      send: () => revokeGrant(opened.client, id, grant, { by: actor }),
    });
    context.note(
      `Grant ${visible(revoked)} of run ${visible(id)} is revoked: later calls need approval again. Calls that have already started continue.`,
    );
    if (context.options.json) context.out(JSON.stringify({ id, revoked }));
    return EXIT.completed;
  },
};
