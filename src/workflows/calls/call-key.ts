import { workflowInfo } from '@temporalio/workflow';
import { idempotencyKey, keyOrigin } from '../../core/calls/idempotency.js';
import type { RunInput } from '../../core/input/input.js';
import type { RunState } from '../../core/state.js';
import { batchOf } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';

/** Returns the idempotency key of one call of the open batch. */
export function callKey({ called }: RunInput, state: RunState, call: ToolCall): string {
  const batch = batchOf(state);
  const { turn } = state;
  const { namespace, workflowId, firstExecutionRunId: firstRunId, parent } = workflowInfo();
  const origin = keyOrigin(
    { namespace, workflowId, firstRunId, parentId: parent?.workflowId },
    called,
  );
  const step = batch?.step ?? turn.spent.steps;
  const index = batch?.calls.findIndex(({ id }) => id === call.id) ?? 0;
  return idempotencyKey({ ...origin, turn: turn.number, step, index }, call);
}
