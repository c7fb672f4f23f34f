import { once } from 'node:events';
import { Context } from '@temporalio/activity';
import { WorkflowNotFoundError, type Client, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { nextRunId, segmentFacts, type FollowOptions } from '../history/follow-history.js';
import type { HistoryFact } from '../history/decode-event.js';
import { outcomeOf } from '../history/projection/state.js';
import { beginningOf } from '../history/segments.js';
import { isObject } from '../core/json.js';
import type { FollowRunInput, FollowRunResult } from '../core/contract.js';
import { withHeartbeat } from './heartbeat.js';

/**
 * Follows the run of a called agent that exists already, through all its segments, and returns its
 * outcome. When the call is canceled, it cancels the run and returns what the run then leaves.
 */
export async function followRun(input: FollowRunInput): Promise<FollowRunResult> {
  const context = Context.current();
  return await withHeartbeat(
    context,
    () => undefined,
    async () => {
      const { client, cancellationSignal: signal } = context;
      const handle = client.workflow.getHandle(input.run);
      const found = await answering(context, handle, input);
      if (typeof found !== 'string') return found;
      const run = { id: input.run, runId: found };
      // The worker's connection cannot break off a poll, so the wait is left; the poll ends by itself.
      const left = once(signal, 'abort').then(() => null);
      const end = signal.aborted
        ? null
        : await Promise.race([endOf(client, { ...run, signal }), left]);
      if (end !== null && !signal.aborted) return end;
      await letGo(context, handle, input);
      return await endOf(client, { ...run, signal: new AbortController().signal });
    },
  );
}

/** Returns the run id where the run answers this call, else what it is instead. */
async function answering(
  { client, info }: Context,
  handle: WorkflowHandle,
  { run, key }: FollowRunInput,
): Promise<string | FollowRunResult> {
  const described = await handle.describe().catch(goneOr);
  const started = described && (await beginningOf(client, run, described.runId));
  if (!described || !started) return { type: 'lost' };
  const { input } = started;
  const called = isObject(input) ? input['called'] : undefined;
  // The server says who the parent is; a key alone could be copied.
  const isOurs =
    isObject(called) &&
    called['key'] === key &&
    described.parentExecution?.workflowId === info.workflowExecution?.workflowId;
  if (isOurs) return described.runId;
  return { type: 'other', running: described.status.name === 'RUNNING' };
}

/** Waits for the end of a run, over continue-as-new; `signal` ends the waiting. */
async function endOf(client: Client, follow: FollowOptions): Promise<FollowRunResult> {
  for (let runId: string | null = follow.runId; runId !== null;) {
    let last: HistoryFact | undefined;
    for await (const facts of segmentFacts(client, { ...follow, runId }, { only: 'end' })) {
      last = facts.at(-1);
    }
    runId = nextRunId(last);
    if (runId !== null) continue;
    const outcome = last?.type === 'ended' ? outcomeOf(last) : null;
    if (outcome !== null) return { type: 'ended', outcome };
  }
  return { type: 'lost' };
}

/**
 * Does to the run what its caller's end means for it. Throws where the activity ends for another
 * reason, such as a worker that shuts down: another attempt then follows the run.
 */
async function letGo(
  { client, info, cancellationSignal }: Context,
  handle: WorkflowHandle,
  { close }: FollowRunInput,
): Promise<void> {
  const reason: unknown = cancellationSignal.reason;
  const why = reason instanceof Error ? reason.message : '';
  const caller = info.workflowExecution?.workflowId ?? '';
  const callerEnded = why === 'NOT_FOUND' && (await isOver(client, caller));
  if (close === 'abandon' || (why !== 'CANCELLED' && !callerEnded)) {
    if (why === 'CANCELLED') throw reason;
    throw ApplicationFailure.create({ type: 'Retry', message: `no longer following: ${why}` });
  }
  if (callerEnded && close === 'terminate') await handle.terminate('its caller ended');
  else await handle.cancel();
}

/** A caller that was reset has another run under the same id, which follows the agent itself. */
async function isOver(client: Client, caller: string): Promise<boolean> {
  const described = await client.workflow.getHandle(caller).describe().catch(goneOr);
  return described?.status.name !== 'RUNNING';
}

function goneOr(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}
