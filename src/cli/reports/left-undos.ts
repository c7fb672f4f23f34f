import { isUndoing } from '../../core/requests/undo-text.js';
import { undosAtEnd } from '../../core/run/status.js';
import { visible } from '../../core/state/summaries.js';
import type { FollowedRun } from '../../history/follow-history.js';
import type { CliContext } from '../context.js';
import type { OpenedRun } from '../open-run.js';
import { viewedRequests } from '../requests/show-request.js';
import { nextCommandFor } from './next-command.js';

/** Names the calls whose undo the end of the run has dropped. */
export function noteNotUndone(context: CliContext, { view }: Pick<FollowedRun, 'view'>): void {
  if (view.state === null) return;
  for (const { call, shown, state, message = '' } of undosAtEnd(view.state)) {
    if (state !== 'not_undone') continue;
    context.note(`Call ${visible(call)} (${visible(shown)}) is not undone: ${visible(message)}.`);
  }
}

/** Names the open requests about an undo, which the end of a run drops. */
export async function noteOpenUndos(context: CliContext, run: OpenedRun['run']): Promise<void> {
  for (const request of viewedRequests(run.view, run.id).filter(isUndoing)) {
    const see = await nextCommandFor(context, run, ['inbox', run.id, request.id]);
    context.note(
      `The undo of call ${visible(request.call ?? '')} waits for approval (request ${visible(request.id)}), and is dropped when the run ends. See it with: ${see}`,
    );
  }
}
