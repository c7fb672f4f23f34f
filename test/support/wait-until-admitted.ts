import type { Client, WorkflowHandle } from '@temporalio/client';
import { vi } from 'vitest';

/** Resolves when the server has admitted an update for the next workflow task. */
export async function waitUntilAdmitted(
  { workflowService, options: { namespace } }: Client,
  { workflowId }: WorkflowHandle,
  updateId: string,
): Promise<void> {
  const updateRef = { workflowExecution: { workflowId }, updateId };
  await vi.waitFor(
    async () => await workflowService.pollWorkflowExecutionUpdate({ namespace, updateRef }),
    { timeout: 20_000, interval: 50 },
  );
}
