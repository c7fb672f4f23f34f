import type { Info } from '@temporalio/activity';
import type { LiveHub } from '../../live/hub.js';
import type { ModelContext, ModelReply } from '../../models/model.js';
import type { CallModelInput } from '../../core/contract.js';
import { redactDeltas } from './redact-deltas.js';

/** Makes a model call that tells its reply to whoever watches, while it comes. */
export async function liveCall(
  live: LiveHub | undefined,
  { info, input }: { readonly info: Info; readonly input: CallModelInput },
  call: (watched: Pick<ModelContext, 'onDelta'>) => Promise<ModelReply>,
): Promise<ModelReply> {
  const { activityId, attempt, workflowExecution } = info;
  if (live === undefined || workflowExecution === undefined) return await call({});
  const { workflowId, runId } = workflowExecution;
  const { turn, step } = input;
  const writer = live.begin(workflowId, {
    segment: runId,
    activity: activityId,
    attempt,
    turn,
    step,
  });
  const redactor = redactDeltas((delta) => writer.push(delta));
  try {
    return await call({ onDelta: (delta) => redactor.push(delta) });
  } finally {
    redactor.end();
    writer.end();
  }
}
