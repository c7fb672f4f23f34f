import type { Client } from '@temporalio/client';
import { expect, vi } from 'vitest';

/** Deletes segments of a run, as the server does after their retention, and waits until they are gone. */
export async function forgetSegments(
  client: Client,
  id: string,
  runIds: readonly string[],
): Promise<void> {
  const { namespace } = client.options;
  await Promise.all(
    runIds.map(async (runId) => {
      const workflowExecution = { workflowId: id, runId };
      await client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution });
      const handle = client.workflow.getHandle(id, runId);
      const isGone = () =>
        handle
          .fetchHistory()
          .then(() => false)
          .catch(() => true);
      await vi.waitFor(async () => expect(await isGone()).toBe(true), {
        timeout: 100_000,
        interval: 50,
      });
    }),
  );
}
