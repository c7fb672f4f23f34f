import { resumeRun } from '../../updates/resolve.js';
import { needsPerson } from '../../core/blocked.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { osUser } from '../input/os-user.js';
import { openLivingRun } from '../decision.js';
import { EXIT } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { nextCommandFor } from '../open-run.js';

/** `resume ID`: what is paused goes on, what is blocked is tried again now instead of at its next probe. */
export const resume: Command<{ readonly id: string }> = async (context, { id }) => {
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  const blocks = [...run.view.blocked];
  const wasPaused = run.view.state?.paused === true;
  const undecided = blocks.filter(([, { reason }]) => needsPerson(reason));
  const [question] = undecided;
  if (question !== undefined && undecided.length === blocks.length && !wasPaused) {
    const see = await nextCommandFor(context, run, ['status', id]);
    const what = question[1].reason === 'safety_check' ? 'may be done' : 'happened';
    throw new Error(
      `trying again is no answer: ${visible(question[0])} waits for a person to say whether it ` +
        `${what}. What to type is shown by: ${see}`,
    );
  }
  await withWorker(context, opened, {
    decision: 'resume',
    say: () => resumeRun(client, id, { by: osUser() }),
  });
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const wasBlocked = blocks.length > 0;
  context.note(
    `Run ${visible(id)} ${resumeText({ paused: wasPaused, blocked: wasBlocked })}. Follow it with: ${follow}`,
  );
  if (context.options.json) {
    context.out(JSON.stringify({ id, resumed: true, wasBlocked, wasPaused }));
  }
  return EXIT.completed;
};

function resumeText(was: { readonly paused: boolean; readonly blocked: boolean }): string {
  if (was.paused) return 'goes on';
  return was.blocked ? 'tries again' : 'is neither paused nor blocked, so nothing changes';
}
