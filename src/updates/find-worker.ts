import type { Client } from '@temporalio/client';
import { livePollers, listPollers } from '../temporal/pollers.js';
import { WorkerSeen } from '../core/errors.js';

/** A look at the server; one that does not answer in this time tells nothing. */
const LOOK_MS = 2_000;

/** The task queue of a run; where there is no such run, the one that it would be started on. Null if unknown. */
export async function findTaskQueue(
  client: Client,
  { id, taskQueue }: { readonly id: string; readonly taskQueue?: string },
): Promise<string | null> {
  const found = await look(client, async () => {
    const { taskQueue: queue } = await client.workflow.getHandle(id).describe();
    return queue;
  });
  return found ?? taskQueue ?? null;
}

/** Whether a worker polls the queue, by the server's list. Null where the server does not say. */
export async function checkForWorker(client: Client, taskQueue: string): Promise<WorkerSeen> {
  const { namespace } = client.options;
  const pollers = await look(client, () => listPollers(client, { namespace, taskQueue }));
  if (pollers === null) return null;
  return livePollers(pollers, Date.now()).length === 0 ? 'missing' : 'silent';
}

async function look<T>(client: Client, read: () => Promise<T>): Promise<T | null> {
  try {
    return await client.withDeadline(Date.now() + LOOK_MS, read);
  } catch {
    return null;
  }
}
