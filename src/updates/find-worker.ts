import type { Client } from '@temporalio/client';
import { describeWorkflow } from '../temporal/server-answers.js';
import { livePollers, listPollers } from '../temporal/pollers.js';
import type { WorkerState } from '../core/errors.js';

/** The time limit for the server's answer. After it, the result is unknown. */
const ANSWER_MS = 2_000;

/**
 * Returns the task queue of a run, or `taskQueue` if there is no such run. Returns null if unknown.
 */
export async function findTaskQueue(
  client: Client,
  { id, taskQueue }: { readonly id: string; readonly taskQueue?: string },
): Promise<string | null> {
  const found = await withinDeadline(client, async () => {
    const { taskQueue: queue } = await describeWorkflow(client, id);
    return queue;
  });
  return found ?? taskQueue ?? null;
}

/**
 * Returns whether a worker polls the queue, according to the server; null if it does not answer.
 */
export async function checkForWorker(client: Client, taskQueue: string): Promise<WorkerState> {
  const { namespace } = client.options;
  const pollers = await withinDeadline(client, () => listPollers(client, { namespace, taskQueue }));
  if (pollers === null) return null;
  return livePollers(pollers, Date.now()).length === 0 ? 'missing' : 'silent';
}

async function withinDeadline<T>(client: Client, read: () => Promise<T>): Promise<T | null> {
  try {
    return await client.withDeadline(Date.now() + ANSWER_MS, read);
  } catch {
    return null;
  }
}
