import { toRunStatus } from '../../client/status.js';
import { RefusedError } from '../../core/errors.js';
import { isUndoing } from '../../core/requests/undo-text.js';
import { undoProblem } from '../../core/state/undo-problem.js';
import { type Undoable, callToUndo } from '../../core/state/undo.js';
import { UNDO } from '../../core/state/work.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type { Request } from '../../core/transcript/request.js';
import { followSegments, nextTarget } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import { type RunReading, readRun } from '../../history/read-run.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import { requestUndo } from '../../updates/decide.js';
import { type CliContext, type Command, EXIT, type ExitCode } from '../context.js';
import {
  type HostedWorker,
  awaitWorker,
  untilPublished,
  withHostedWorker,
} from '../hosting/with-worker.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import {
  type OpenedRun,
  agentLack,
  requireNotCanceled,
  requireOpenRun,
  requireWorker,
  undoingTools,
  workerHint,
} from '../open-run.js';
import { nextCommandFor, runnableText } from '../reports/next-command.js';
import { viewedRequests } from '../requests/show-request.js';

interface UndoOptions {
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
  async run(context, { id: named, call, by }) {
    const actor = deciderName(by);
    const opened = await requireOpenRun(
      context,
      named,
      'An ended run undoes nothing; start one with --open to keep its calls undoable.',
    );
    const { id } = opened.run;
    await requireNotCanceled(context, opened, 'undo');
    await requireUndoable(opened, call);
    if (!(await isHosted(context, opened, call))) {
      await requireWorker(context, opened, 'undo', { follows: false });
    }
    return await withHostedWorker(context, { ...opened.run, isNeeded: true }, async (host) => {
      await awaitWorker(opened, host);
      const given = { by: actor, ...(call !== undefined && { call }) };
      const undoing = await requestUndo(opened.client, id, given).catch(async (error: unknown) => {
        throw await namingRequest(context, opened, error);
      });
      const progress = await progressOf(opened, undoing, host);
      await untilPublished(context, { id, hosting: host.hosting });
      context.note(await progressText(context, undoing, progress));
      return await report(context, { id, undoing, host }, progress);
    });
  },
};

/**
 * Whether a worker of this process could undo the call, and would find nothing else to do: it would drop that as
 * soon as the undo has ended.
 */
async function isHosted(
  context: CliContext,
  { run }: OpenedRun,
  call: string | undefined,
): Promise<boolean> {
  const { state } = run.view;
  if (state === null || nextTarget(run.view) !== null) return false;
  if ((await agentLack(context, run)) !== null) return true;
  const found = callToUndo(state, call, Date.now());
  return found === undefined || (await undoingTools(context, run)).includes(found.call.name);
}

/** Prints the result for programs, and how an undo goes on that this process leaves; returns the exit code. */
async function report(
  context: CliContext,
  { id, undoing, host }: { id: string; undoing: string; host: HostedWorker },
  progress: Progress,
): Promise<ExitCode> {
  const { state, request, message } = progress.call ?? {};
  if (context.options.json) {
    context.out(
      JSON.stringify({
        id,
        undoing,
        ...(state && { state }),
        ...(request && { request }),
        ...(message && { message }),
      }),
    );
  }
  const isLeft = state === 'undoing' && progress.request === undefined;
  if (isLeft && host.hosting.isHosting) {
    context.note(`No other worker is running. ${await workerHint(context, progress.run)}`);
  }
  if (host.interrupt.aborted) return EXIT.interrupted;
  return state === 'failed' || state === 'denied' ? EXIT.failed : EXIT.completed;
}

/** Throws an error that says why a call cannot be undone, if no worker is there that would say so. */
async function requireUndoable(
  { client, run: { view, taskQueue } }: OpenedRun,
  call: string | undefined,
): Promise<void> {
  const problem = view.state === null ? null : undoProblem(view.state, call, Date.now());
  if (problem === null || (await hasLiveWorker(client, taskQueue))) return;
  throw new RefusedError(problem);
}

/** Adds the command that shows the request for whose decision an earlier undo waits. */
async function namingRequest(
  context: CliContext,
  { run }: OpenedRun,
  error: unknown,
): Promise<unknown> {
  if (!RefusedError.isInstance(error)) return error;
  const { message, reason } = error;
  const request = viewedRequests(run.view, run.id).find(
    (one) => isUndoing(one) && `${message} `.includes(`about request ${one.id} `),
  );
  if (request === undefined) return error;
  const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
  return new RefusedError(`${message}. See it with: ${see}`, { reason, cause: error });
}

/** A run after an undo was requested, and what its status says of the call. */
interface Progress {
  readonly run: RunReading;
  /** Absent if the run no longer has it. */
  readonly call: Undoable | undefined;
  /** The open request for whose decision the undo waits, if any. */
  readonly request: Request | undefined;
  /** What has to be fixed before a worker can execute the undo; absent if nothing has. */
  readonly blocked?: string;
}

/** The longest wait until an undo has ended or waits for a person, if a worker elsewhere executes it. */
const PROGRESS_MS = 10_000;

/**
 * Waits until an undo has ended or waits for a person; not for a paused run or for what is blocked. The
 * worker of this process would end with the command, so only an interrupt ends the wait for it.
 */
async function progressOf(
  { client, run }: OpenedRun,
  undoing: string,
  { hosting, interrupt }: HostedWorker,
): Promise<Progress> {
  const limits = hosting.isHosting ? [hosting.died] : [AbortSignal.timeout(PROGRESS_MS)];
  const signal = AbortSignal.any([interrupt, ...limits]);
  const { id, runId } = run;
  for await (const { view } of followSegments(client, { id, runId, signal })) {
    if (!mayBeKnown(view, { id, undoing })) continue;
    const progress = await readProgress();
    if (isKnown(progress)) return progress;
  }
  if (hosting.died.aborted) throw hosting.died.reason;
  return await readProgress();

  async function readProgress(): Promise<Progress> {
    const read = await readRun(client, id);
    const { undoable = [], pending } = toRunStatus(read, Date.now());
    const call = undoable.find((one) => one.call === undoing);
    const request = pending.find((one) => one.id === call?.request);
    const blocked = read.view.blocked.get(`${UNDO}${undoing}`)?.message;
    return { run: read, call, request, ...(blocked !== undefined && { blocked }) };
  }
}

/** Whether a run that is followed, which may not have reached the undo yet, is worth reading as a whole. */
function mayBeKnown(
  view: Projection,
  { id, undoing }: { readonly id: string; readonly undoing: string },
): boolean {
  const { state, ended } = view;
  if (ended !== null || state?.paused === true || view.blocked.has(`${UNDO}${undoing}`))
    return true;
  const kept = state?.kept?.find(({ call }) => call.id === undoing);
  if (kept?.state !== undefined && kept.state !== 'undoing') return true;
  return viewedRequests(view, id).some((one) => one.call === undoing && isUndoing(one));
}

function isKnown({ run, call, request, blocked }: Progress): boolean {
  if (call?.state !== 'undoing' || request !== undefined || blocked !== undefined) return true;
  return run.view.state?.paused === true;
}

/** Returns what has become of an undo so far, and the command that helps next. */
async function progressText(
  context: CliContext,
  undoing: string,
  { run, call, request, blocked }: Progress,
): Promise<string> {
  const { id } = run;
  const what = `call ${visible(undoing)} of run ${visible(id)}`;
  const command = async (words: readonly string[]): Promise<string> =>
    await nextCommandFor(context, run, words);
  if (request !== undefined) {
    const see = await command(['inbox', id, request.id]);
    return `The undo of ${what} waits for approval (request ${visible(request.id)}). See it, and how to decide, with: ${see}`;
  }
  if (blocked !== undefined) {
    return `The undo of ${what} is blocked: ${visibleMessage(runnableText(context, blocked))}. It is retried automatically; see the result with: ${await command(['status', id])}`;
  }
  const reason = call?.message === undefined ? '' : `: ${visibleMessage(call.message)}`;
  const isPaused = run.view.state?.paused === true;
  switch (call?.state) {
    case 'undone':
      return `C${what.slice(1)} is undone.`;
    case 'denied':
      return `The undo of ${what} was denied${reason}.`;
    case 'failed':
      return `The undo of ${what} failed${reason}.`;
    default:
      return isPaused
        ? `The undo of ${what} waits, since the run is paused. Resume it with: ${await command(['resume', id])}`
        : `C${what.slice(1)} is being undone. See the result with: ${await command(['status', id])}`;
  }
}
