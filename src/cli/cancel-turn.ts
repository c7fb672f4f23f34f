import { cancelTurn } from '../updates/control.js';
import { visible } from '../core/text/summaries.js';
import { osUser } from './claim.js';
import type { CliContext } from './context.js';
import { demandWorker } from './decision.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { followWithin } from './run-view/follow-within.js';
import { adviceFor, type OpenedRun } from './open-run.js';
import { reportEnd, reportTurn } from './reports/report-end.js';
import { openLines } from './reports/report-pause.js';

const END_WITHIN_MS = 10_000;

/** Ends the turn under way, and waits a moment for it to end. An open run lives on. */
export async function cancelTheTurn(
  context: CliContext,
  opened: OpenedRun,
  { wait }: { readonly wait: boolean },
): Promise<ExitCode> {
  const { client, run } = opened;
  const { id, runId } = run;
  await demandWorker(context, opened, 'cancel --turn');
  const turn = await cancelTurn(client, id, { by: osUser() });
  const isOpen = run.view.input?.open === true;
  const until = isOpen ? { turn } : 'end';
  const arrival = wait ? await followWithin(opened, until, { ms: END_WITHIN_MS }) : null;
  if (arrival === null) {
    const late = wait ? ` It has not ended within ${END_WITHIN_MS / 1_000} s.` : '';
    const see = await adviceFor(context, run, ['status', id]);
    context.say(`The cancel of turn ${turn} of ${visible(id)} is asked for.${late} See: ${see}`);
    const told = { id, runId, turn, status: 'working', reason: 'cancel_requested' };
    if (context.options.json) context.out(JSON.stringify(told));
    return EXIT.completed;
  }
  const { last, reached } = arrival;
  const over = { id, runId: last.runId, view: last.view };
  const code =
    reached.type === 'turn-ended'
      ? await reportTurn(context, { ...reached.ended, ...over })
      : await reportEnd(context, over);
  if (isOpen) for (const line of await openLines(context, run)) context.say(line);
  if (code === EXIT.cancelled) return EXIT.completed;
  context.say('It ended before the cancel reached it.');
  return EXIT.failed;
}
