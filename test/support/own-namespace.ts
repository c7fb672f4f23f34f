import { randomUUID } from 'node:crypto';
import { Client, type ConnectionLike } from '@temporalio/client';
import { expect } from 'vitest';

/**
 * Makes a namespace, and waits until the server starts workflows in it. For what tests that list all
 * runs of the shared server must not meet, such as runs whose key they do not have.
 */
export async function ownNamespace(connection: ConnectionLike): Promise<string> {
  const namespace = `own-${randomUUID()}`;
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  const { workflow } = new Client({ connection, namespace });
  const start = async (): Promise<unknown> =>
    await workflow.start('first', { taskQueue: 'nowhere', workflowId: 'first' }).catch(() => null);
  await expect.poll(start, { timeout: 30_000 }).not.toBeNull();
  await workflow.getHandle('first').terminate();
  return namespace;
}
