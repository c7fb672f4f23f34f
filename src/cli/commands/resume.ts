import { resumeRun } from '../../client/decide.js';
import { visible } from '../../core/summaries.js';
import type { Command } from '../command.js';
import { demandWorker, openLivingRun } from '../decision.js';
import { EXIT } from '../exit-codes.js';
import { adviceFor } from '../open-run.js';

/** `resume ID`: what is blocked is tried again at once instead of at its next probe. */
export const resume: Command<{ readonly id: string }> = async (context, { id }) => {
  const opened = await openLivingRun(context, id);
  const { client, run } = opened;
  const blocks = [...run.view.blocked];
  const undecided = blocks.filter(([, { reason }]) => reason === 'outcome_unknown');
  const [question] = undecided;
  if (question !== undefined && undecided.length === blocks.length) {
    const see = await adviceFor(context, run, ['status', id]);
    throw new Error(
      `trying again is no answer: ${visible(question[0])} waits for a person to say whether it ` +
        `happened. What to type is shown by: ${see}`,
    );
  }
  await demandWorker(context, opened, 'resume');
  await resumeRun(client, id);
  const follow = await adviceFor(context, run, ['attach', id]);
  context.say(
    blocks.length === 0
      ? `Run ${visible(id)} is not blocked, so nothing changes. Follow it with: ${follow}`
      : `Run ${visible(id)} tries again. Follow it with: ${follow}`,
  );
  if (context.options.json) {
    context.out(JSON.stringify({ id, resumed: true, wasBlocked: blocks.length > 0 }));
  }
  return EXIT.completed;
};
