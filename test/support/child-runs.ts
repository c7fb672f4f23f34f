import type { Client, WorkflowHandle } from '@temporalio/client';
import { vi } from 'vitest';

/** Returns the id of the run that executes a call of an agent; waits until the call has begun. */
export async function childOf(
  client: Client,
  handle: WorkflowHandle,
  call = 'call_1_1_0',
): Promise<WorkflowHandle> {
  const id = await vi.waitFor(
    async () => {
      const { events } = await client.workflow.getHandle(handle.workflowId).fetchHistory();
      const ids = (events ?? []).map(
        (event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId ?? '',
      );
      const found = ids.findLast((each) => /\/([^/-]+)(-|$)/.exec(each)?.[1] === call);
      if (found === undefined) throw new Error(`${handle.workflowId} has not begun ${call}`);
      return found;
    },
    { timeout: 30_000, interval: 20 },
  );
  return client.workflow.getHandle(id);
}
