import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { listPollers, livePollers } from './pollers.js';

/** How long a living worker may take to answer. */
const ANSWER_MS = 2_000;

/**
 * Whether a worker works on the task queue. The server's list alone does not tell: a worker that is
 * gone stays on it for minutes, so one that polled lately is asked to run the workflow `probe`.
 */
export async function hasLiveWorker(client: Client, taskQueue: string): Promise<boolean> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  if (livePollers(pollers, Date.now()).length === 0) return false;
  return await answersProbe(client, taskQueue);
}

async function answersProbe(client: Client, taskQueue: string): Promise<boolean> {
  const handle = await client.workflow.start('probe', {
    taskQueue,
    workflowId: `perdure-probe-${randomUUID()}`,
    // Nobody wants to hear the answer of a worker that comes later.
    workflowExecutionTimeout: ANSWER_MS,
    workflowTaskTimeout: 1_000,
    staticSummary: 'is a worker alive?',
  });
  const given = new AbortController();
  const { workflowId, firstExecutionRunId: runId } = handle;
  const answered = client.connection
    .withAbortSignal(given.signal, () => isTakenUp(client, { workflowId, runId }))
    .catch(() => false);
  const late = pause(ANSWER_MS, false, { signal: given.signal }).catch(() => false);
  try {
    return await Promise.race([answered, late]);
  } finally {
    given.abort();
  }
}

/**
 * Whether a worker has dealt with the workflow, by its history. One that somebody else has made may
 * know agents and no probe: it fails the task, and is there all the same.
 */
async function isTakenUp(
  { workflowService, options: { namespace } }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
): Promise<boolean> {
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await workflowService.getWorkflowExecutionHistory({
      namespace,
      execution,
      waitNewEvent: true,
      ...(nextPageToken && { nextPageToken }),
    });
    const isDealtWith = page.history?.events?.some(
      (event) =>
        event.workflowTaskCompletedEventAttributes ?? event.workflowTaskFailedEventAttributes,
    );
    if (isDealtWith) return true;
    nextPageToken = page.nextPageToken;
  } while (nextPageToken.length > 0);
  return false;
}
