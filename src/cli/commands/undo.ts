import { toRunStatus } from '../../client/status.js';
import { RefusedError } from '../../core/errors.js';
import { isUndoing } from '../../core/requests/undo-text.js';
import { undoProblem } from '../../core/state/undo-problem.js';
import type { Undoable } from '../../core/state/undo.js';
import { visible, visibleMessage } from '../../core/state/summaries.js';
import type { Request } from '../../core/transcript/request.js';
import { followSegments } from '../../history/follow-history.js';
import type { Projection } from '../../history/projection.js';
import { type RunReading, readRun } from '../../history/read-run.js';
import { hasLiveWorker } from '../../temporal/pollers.js';
import { requestUndo } from '../../updates/decide.js';
import { type CliContext, type Command, EXIT } from '../context.js';
import { deciderName } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';
import { type OpenedRun, requireOpenRun, requireWorker } from '../open-run.js';
import { nextCommandFor } from '../reports/next-command.js';
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
    const opened = await requireOpenRun(context, named);
    const { id } = opened.run;
    await requireUndoable(opened, call);
    // The undo itself also needs a worker, and a worker in this process would end before it. One that
    // follows the run may end it first.
    await requireWorker(context, opened, 'undo', { follows: false });
    const given = { by: actor, ...(call !== undefined && { call }) };
    const undoing = await requestUndo(opened.client, id, given).catch(async (error: unknown) => {
      throw await namingRequest(context, opened, error);
    });
    const progress = await progressOf(opened, undoing);
    context.note(await progressText(context, undoing, progress));
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
    return state === 'failed' || state === 'denied' ? EXIT.failed : EXIT.completed;
  },
};

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
}

/** The longest wait until an undo has ended or waits for a person. */
const PROGRESS_MS = 10_000;

/** Waits until an undo has ended or waits for a person; not longer than `PROGRESS_MS`, nor for a paused run. */
async function progressOf({ client, run }: OpenedRun, undoing: string): Promise<Progress> {
  const signal = AbortSignal.timeout(PROGRESS_MS);
  const { id, runId } = run;
  for await (const { view } of followSegments(client, { id, runId, signal })) {
    if (!mayBeKnown(view, { id, undoing })) continue;
    const progress = await readProgress();
    if (isKnown(progress)) return progress;
  }
  return await readProgress();

  async function readProgress(): Promise<Progress> {
    const read = await readRun(client, id);
    const { undoable = [], pending } = toRunStatus(read, Date.now());
    const call = undoable.find((one) => one.call === undoing);
    const request = pending.find((one) => one.id === call?.request);
    return { run: read, call, request };
  }
}

/** Whether a run that is followed, which may not have reached the undo yet, is worth reading as a whole. */
function mayBeKnown(
  view: Projection,
  { id, undoing }: { readonly id: string; readonly undoing: string },
): boolean {
  const { state, ended } = view;
  if (ended !== null || state?.paused === true) return true;
  const kept = state?.kept?.find(({ call }) => call.id === undoing);
  if (kept?.state !== undefined && kept.state !== 'undoing') return true;
  return viewedRequests(view, id).some((one) => one.call === undoing && isUndoing(one));
}

function isKnown({ run, call, request }: Progress): boolean {
  return call?.state !== 'undoing' || request !== undefined || run.view.state?.paused === true;
}

/** Returns what has become of an undo so far, and the command that helps next. */
async function progressText(
  context: CliContext,
  undoing: string,
  { run, call, request }: Progress,
): Promise<string> {
  const { id } = run;
  const what = `call ${visible(undoing)} of run ${visible(id)}`;
  const command = async (words: readonly string[]): Promise<string> =>
    await nextCommandFor(context, run, words);
  if (request !== undefined) {
    const see = await command(['inbox', id, request.id]);
    return `The undo of ${what} waits for approval (request ${visible(request.id)}). See it, and how to decide, with: ${see}`;
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
