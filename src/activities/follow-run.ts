import { once } from 'node:events';
import { Context } from '@temporalio/activity';
import { WorkflowNotFoundError, type Client, type WorkflowHandle } from '@temporalio/client';
import { nextRunId, segmentEvents, type FollowedSegment } from '../history/follow-history.js';
import type { HistoryEvent } from '../history/history-event.js';
import { endOutcome } from '../history/projection.js';
import { readSegmentStart } from '../history/segments.js';
import { describeWorkflow } from '../temporal/server-answers.js';
import { isObject } from '../core/text/json.js';
import type { FollowRunInput, FollowRunResult } from '../core/run/contract.js';
import { interruptionCause, retryFailure, withHeartbeat } from './attempt.js';

/**
 * Follows the existing run of a called agent through all its segments, and returns its outcome. If
 * the call is canceled, the activity ends the run according to its parent-close policy, and returns
 * the resulting outcome. Throws a failure that Temporal retries if the activity is interrupted for
 * another reason.
 */
export async function followRun(input: FollowRunInput): Promise<FollowRunResult> {
  const context = Context.current();
  return await withHeartbeat(context, async () => {
    const { client, cancellationSignal: signal } = context;
    const handle = client.workflow.getHandle(input.run);
    const found = await findRun(context, input);
    if (typeof found !== 'string') return found;
    const run = { id: input.run, runId: found };
    // The worker's connection cannot cancel a long poll, so the poll is abandoned and ends by
    // itself.
    const interrupted = once(signal, 'abort').then(() => null);
    const end = signal.aborted
      ? null
      : await Promise.race([waitForEnd(client, { ...run, signal }), interrupted]);
    if (end !== null && !signal.aborted) return end;
    await endFollowedRun(context, handle, input);
    return await waitForEnd(client, { ...run, signal: new AbortController().signal });
  });
}

/** Returns the run id if the run belongs to this call, else the result that describes the run. */
async function findRun(
  { client, info }: Context,
  { run, key }: FollowRunInput,
): Promise<string | FollowRunResult> {
  const described = await describeWorkflow(client, run).catch(nullIfNotFound);
  const started = described && (await readSegmentStart(client, run, described.runId));
  if (!described || !started) return { type: 'lost' };
  const { input } = started;
  const called = isObject(input) ? input['called'] : undefined;
  // A key could be copied, so the parent reported by the server must also match.
  const isOwn =
    isObject(called) &&
    called['key'] === key &&
    described.parentExecution?.workflowId === info.workflowExecution?.workflowId;
  if (isOwn) return described.runId;
  return { type: 'other', running: described.status.name === 'RUNNING' };
}

/** Waits for the end of a run, across continue-as-new. `follow.signal` ends the wait. */
async function waitForEnd(client: Client, follow: FollowedSegment): Promise<FollowRunResult> {
  for (let runId: string | null = follow.runId; runId !== null;) {
    let last: HistoryEvent | undefined;
    for await (const events of segmentEvents(client, { ...follow, runId }, { only: 'end' })) {
      last = events.at(-1);
    }
    runId = nextRunId(last);
    if (runId !== null) continue;
    const outcome = last?.type === 'ended' ? endOutcome(last) : null;
    if (outcome !== null) return { type: 'ended', outcome };
  }
  return { type: 'lost' };
}

/**
 * Cancels or terminates the run, as the end of its caller requires. Throws the cancellation if the
 * run continues without its caller. If the caller continues, throws a failure that Temporal
 * retries, so another attempt follows the run.
 */
async function endFollowedRun(
  context: Context,
  handle: WorkflowHandle,
  { close }: FollowRunInput,
): Promise<void> {
  const { client, info, cancellationSignal } = context;
  const cause = interruptionCause(context);
  const isCanceled = cause === 'CANCELLED';
  const caller = info.workflowExecution?.workflowId ?? '';
  const callerEnded = cause === 'NOT_FOUND' && (await isOver(client, caller));
  if (close === 'abandon' || (!isCanceled && !callerEnded)) {
    if (isCanceled) throw cancellationSignal.reason;
    throw retryFailure(`no longer following: ${cause}`);
  }
  if (callerEnded && close === 'terminate') await handle.terminate('its caller ended');
  else await handle.cancel();
}

/**
 * Whether the caller is over. A caller that was reset runs again under the same id and follows the
 * called agent itself.
 */
async function isOver(client: Client, caller: string): Promise<boolean> {
  const described = await describeWorkflow(client, caller).catch(nullIfNotFound);
  return described?.status.name !== 'RUNNING';
}

function nullIfNotFound(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}
