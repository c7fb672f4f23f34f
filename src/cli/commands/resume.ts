import { resumeRun } from '../../updates/control.js';
import { visible } from '../../core/text/summaries.js';
import type { Command } from '../command.js';
import { CommandError, EXIT, type ExitCode } from '../exit-codes.js';
import { withWorker } from '../hosting/with-worker.js';
import { controlRuns, type ControlOptions } from '../hosting/control-runs.js';
import { withOptions } from '../input/options.js';
import type { CliContext } from '../context.js';
import { requireOpenRun } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
import { viewedRequests } from '../requests/open-requests.js';

/**
 * `resume ID`: continues a paused run, and retries a blocked run at once instead of at its next
 * probe.
 */
export const resume: Command<ControlOptions> = {
  declare: (entry) => withOptions(entry.argument('[id]', 'the run'), 'all', 'agent', 'by'),
  run: async (context, options) => await controlRuns(context, 'resume', options, resumeOne),
};

async function resumeOne(context: CliContext, id: string, by: string): Promise<ExitCode> {
  const opened = await requireOpenRun(context, id);
  const { client, run } = opened;
  const wasBlocked = run.view.blocked.size > 0;
  const wasPaused = run.view.state?.paused === true;
  const [request] = viewedRequests(run.view, id);
  if (request !== undefined && !wasBlocked && !wasPaused) {
    const see = await nextCommandFor(context, run, ['inbox', id]);
    throw new CommandError(
      'waits_for_decision',
      `resume cannot decide for a person: request ${visible(request.id)} (${request.kind}) waits for a ` +
        `decision. See the commands for it with: ${see}`,
    );
  }
  await withWorker(context, opened, {
    decision: 'resume',
    send: () => resumeRun(client, id, { by }),
  });
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const text = resumeText({ paused: wasPaused, blocked: wasBlocked });
  context.note(`Run ${visible(id)} ${text}. Follow it with: ${follow}`);
  if (context.options.json) {
    context.out(JSON.stringify({ id, resumed: true, wasBlocked, wasPaused }));
  }
  return EXIT.completed;
}

function resumeText(was: { readonly paused: boolean; readonly blocked: boolean }): string {
  if (was.paused) return 'resumes';
  return was.blocked ? 'retries' : 'is neither paused nor blocked, so nothing changes';
}
