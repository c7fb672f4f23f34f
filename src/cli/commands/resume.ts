import { resumeRun } from '../../updates/control.js';
import { needsPerson } from '../../core/blocked.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';

/** `resume ID`: continues a paused run, and retries a blocked run at once instead of at its next probe. */
export const resume: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument('<id>', 'the run'),
  async run(context, { id }) {
    const opened = await openLivingRun(context, id);
    const { client, run } = opened;
    const blocks = [...run.view.blocked];
    const wasPaused = run.view.state?.paused === true;
    const undecided = blocks.filter(([, { reason }]) => needsPerson(reason));
    const [question] = undecided;
    if (question !== undefined && undecided.length === blocks.length && !wasPaused) {
      const see = await nextCommandFor(context, run, ['status', id]);
      const [call, { reason }] = question;
      const decision = reason === 'safety_check' ? 'may be executed' : 'happened';
      throw new Error(
        `resume cannot decide for a person: call ${visible(call)} waits for a decision on whether ` +
          `it ${decision}. See the commands for it with: ${see}`,
      );
    }
    await withWorker(context, opened, {
      decision: 'resume',
      send: () => resumeRun(client, id, { by: osUser() }),
    });
    const follow = await nextCommandFor(context, run, ['attach', id]);
    const wasBlocked = blocks.length > 0;
    const text = resumeText({ paused: wasPaused, blocked: wasBlocked });
    context.note(`Run ${visible(id)} ${text}. Follow it with: ${follow}`);
    if (context.options.json) {
      context.out(JSON.stringify({ id, resumed: true, wasBlocked, wasPaused }));
    }
    return EXIT.completed;
  },
};

function resumeText(was: { readonly paused: boolean; readonly blocked: boolean }): string {
  if (was.paused) return 'resumes';
  return was.blocked ? 'retries' : 'is neither paused nor blocked, so nothing changes';
}
