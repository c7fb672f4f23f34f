import { workflowInfo } from '@temporalio/workflow';
import { idempotencyKey, keyOrigin, type KeyOrigin } from '../../core/calls/idempotency.js';
import type { RunInput } from '../../core/input/input.js';
import type { RunState } from '../../core/state.js';
import { getOpenBatch } from '../../core/turn.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { WORK } from '../../core/work/work.js';

/** Returns the idempotency key of one call of the open batch. */
export function callKey({ called }: RunInput, state: RunState, call: ToolCall): string {
  const batch = getOpenBatch(state);
  const { turn } = state;
  const origin = originOf(called);
  const step = batch?.step ?? turn.spent.steps;
  const index = batch?.calls.findIndex(({ id }) => id === call.id) ?? 0;
  return idempotencyKey({ ...origin, turn: turn.number, step, index }, call);
}

/**
 * Returns the idempotency key for remembering the ended turn. It is the same after a reset in the
 * turn.
 */
export function memoryKey({ called }: RunInput, { turn }: RunState): string {
  const place = { ...originOf(called), turn: turn.number, step: 0, index: 0 };
  return idempotencyKey(place, { name: WORK.remember, digest: '' });
}

function originOf(called: RunInput['called']): KeyOrigin {
  const { namespace, workflowId, firstExecutionRunId: firstRunId, parent } = workflowInfo();
  return keyOrigin({ namespace, workflowId, firstRunId, parentId: parent?.workflowId }, called);
}
