import { randomUUID } from 'node:crypto';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { expect } from 'vitest';
import type { RunInput } from '../../src/core/input/input.js';
import { ownBundle } from './own-bundle.js';
import { workflowsOnly } from './worker-by-env.js';

/** A workflow of a project's own that has run an agent twice, and both runs, the older one first. */
export interface OwnCaller {
  readonly handle: WorkflowHandle;
  readonly runs: readonly string[];
}

/**
 * Lets a project's own workflow, which has a worker of its own, run an agent twice. Resolves when the server
 * lists both runs as closed and, without `stay`, the workflow has ended.
 */
export async function ownCaller(
  { client, address, taskQueue }: { client: Client; address: string; taskQueue: string },
  input: RunInput,
  { stay = false }: { readonly stay?: boolean } = {},
): Promise<OwnCaller> {
  const own = `own-${randomUUID()}`;
  const worker = await workflowsOnly({ ADDRESS: address, QUEUE: own }, await ownBundle());
  const ended = worker.run();
  const args = [input, { taskQueue, stay }] as const;
  const start = { taskQueue: own, workflowId: own, args: [...args] };
  const handle = await client.workflow.start('caller', start);
  const query = `ParentWorkflowId = '${own}' AND CloseTime IS NOT NULL`;
  const closed = async (): Promise<readonly string[]> => {
    const found: { readonly id: string; readonly at: number }[] = [];
    for await (const { workflowId: id, startTime } of client.workflow.list({ query }))
      found.push({ id, at: startTime.getTime() });
    return found.toSorted((a, b) => a.at - b.at).map(({ id }) => id);
  };
  await expect.poll(closed).toHaveLength(2);
  if (!stay) await handle.result();
  worker.shutdown();
  await ended;
  await worker.options.connection?.close();
  return { handle, runs: await closed() };
}
