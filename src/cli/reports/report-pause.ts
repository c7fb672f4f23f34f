import type { FollowedRun } from '../../history/follow-run.js';
import { nextTarget } from '../../history/follow-target.js';
import type { CliContext } from '../context.js';
import { visible } from '../../core/text/summaries.js';
import { uiLink } from './run-header.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { nextCommandFor, nextCommandAbout } from './next-command.js';
import type { OpenRequest } from '../../client/memo-requests.js';
import { inboxLines } from '../requests/inbox-lines.js';
import { viewedRequests, viewedStatus } from '../requests/open-requests.js';
import { columnsOf, shownRequest } from '../requests/show-request.js';

/** A run that stays open after the command ends. */
export interface LeftRun {
  readonly id: string;
  readonly runId: string;
  readonly taskQueue: string;
  readonly last: FollowedRun | null;
  /** Whether the worker was in this process; if so, the run makes no progress from now on. */
  readonly wasHosting: boolean;
}

/** A run that waits, with the open requests of the runs of called agents below it. */
export interface WaitingRun extends LeftRun {
  readonly below: readonly OpenRequest[];
}

/**
 * Reports a run that waits: each request with the commands to decide, or how to continue the run.
 */
export async function reportWaiting(context: CliContext, run: WaitingRun): Promise<ExitCode> {
  const { id, last, below } = run;
  const requests = last === null ? [] : viewedRequests(last.view, id);
  for (const request of requests) {
    for (const line of await shownRequest(context, { run, request }, { to: 'stderr' })) {
      context.note(line);
    }
  }
  if (below.length > 0) {
    context.note('A run that this run called is waiting for a decision; decide in that run:');
    const show = (one: OpenRequest): string =>
      nextCommandAbout(context, ['inbox', one.run, one.id]);
    const options = { width: columnsOf('stderr'), now: Date.now(), show };
    for (const line of inboxLines(below, options)) context.note(line);
  }
  context.note(`The run is still open and waiting. ${await continueText(context, run)}`);
  const [kind] = [...requests, ...below].map((request) => request.kind);
  writeJson(context, run, kind === undefined ? {} : { status: 'waiting_decision', reason: kind });
  if (kind !== undefined) return EXIT.waiting;
  return last !== null && last.view.blocked.size > 0 ? EXIT.blocked : EXIT.waiting;
}

async function continueText(context: CliContext, run: WaitingRun): Promise<string> {
  const { id, last, wasHosting, below } = run;
  const isAsking = below.length > 0 || (last !== null && viewedRequests(last.view, id).length > 0);
  if (isAsking && !wasHosting) return 'A worker elsewhere continues it after your decision.';
  if (isAsking) {
    return `Its worker was in this process; start one first with: ${await nextCommandFor(context, run, ['worker'])}`;
  }
  if (last === null || last.view.blocked.size === 0) {
    return `It is paused. Resume it with: ${await nextCommandFor(context, run, ['resume', id])}`;
  }
  const next = await nextCommandFor(context, run, [wasHosting ? 'attach' : 'resume', id]);
  return `After a fix, run: ${next}`;
}

/** Reports how to continue an open run whose turn has ended. */
export async function reportOpen(context: CliContext, run: LeftRun): Promise<void> {
  const { id, last, wasHosting } = run;
  const next = last && nextTarget(last.view);
  if (next === null) {
    for (const line of await openLines(context, run)) context.note(line);
    return;
  }
  const follow = await nextCommandFor(context, run, ['attach', id]);
  const what = next === 'end' ? 'is ending' : `continues with turn ${next.turn}`;
  const noWorker = wasHosting ? ', but no worker is running now' : '';
  context.note(`The run ${what}${noWorker}. Follow it with: ${follow}`);
}

/** Returns the commands that send a message to an open run and that end it. */
export async function openLines(
  context: CliContext,
  run: Pick<LeftRun, 'id' | 'taskQueue'>,
): Promise<readonly string[]> {
  const send = await nextCommandFor(context, run, ['send', run.id, 'MESSAGE']);
  const close = await nextCommandFor(context, run, ['close', run.id]);
  return [`Send it the next message with: ${send}`, `End it with: ${close}`];
}

/** Reports a run that this command has started and does not follow. */
export async function reportStarted(
  context: CliContext,
  { taskQueue }: { readonly taskQueue: string },
  { id, runId }: { readonly id: string; readonly runId: string },
): Promise<ExitCode> {
  const link = uiLink(await context.server(), id);
  context.note(`run ${visible(id)} started${link === null ? '' : ` · ${link}`}`);
  context.note(`Follow it with: ${await nextCommandFor(context, { taskQueue }, ['attach', id])}`);
  const line = { id, runId, status: 'working', reason: null };
  context.out(context.options.json ? JSON.stringify(line) : id);
  return EXIT.completed;
}

/** Reports that the command was interrupted, which does not end the run. */
export async function reportInterrupted(context: CliContext, run: LeftRun): Promise<ExitCode> {
  const next = await nextCommandFor(context, run, ['attach', run.id]);
  context.note(
    run.wasHosting
      ? `Interrupted: run ${run.id} makes no progress without a worker; nothing is lost. Continue with: ${next}`
      : `Interrupted: run ${run.id} continues on a worker elsewhere. Follow it with: ${next}`,
  );
  writeJson(context, run, { reason: 'interrupted' });
  return EXIT.interrupted;
}

/** Writes the `--json` line: the run's own status and reason, unless others are given. */
function writeJson(
  context: CliContext,
  run: LeftRun,
  given: { readonly status?: string; readonly reason?: string },
): void {
  if (!context.options.json) return;
  const { id, runId, last } = run;
  const own = last === null ? null : viewedStatus(last.view, id);
  const status = own?.status ?? 'working';
  const hasReason = status === 'blocked' || status === 'waiting_decision';
  // While a run works, its reason is that of its last turn.
  const reason = hasReason ? (own?.reason ?? null) : null;
  const line = { status, reason: reason ?? given.reason ?? null };
  context.out(JSON.stringify({ id, runId, ...line, ...(given.status !== undefined && given) }));
}
