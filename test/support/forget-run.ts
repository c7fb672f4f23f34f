import type { Client } from '@temporalio/client';
import { expect, vi } from 'vitest';

/** Deletes segments of a run, as the server does after their retention, and waits until they are gone. */
export async function forgetSegments(
  client: Client,
  id: string,
  runIds: readonly string[],
): Promise<void> {
  const { namespace } = client.options;
  const executions = runIds.map((runId) => ({ workflowId: id, runId }));
  await Promise.all(
    executions.map(async (workflowExecution) => {
      await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
    }),
  );
  // In turn, and only the first event: the server takes a second, and questions keep it busy.
  for (const execution of executions) {
    const isGone = () =>
      client.workflowService
        .getWorkflowExecutionHistory({ namespace, execution, maximumPageSize: 1 })
        .then(() => false)
        .catch(() => true);
    await vi.waitFor(async () => expect(await isGone()).toBe(true), {
      timeout: 100_000,
      interval: 200,
    });
  }
}
