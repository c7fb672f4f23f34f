import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { listPollers, livePollers } from './pollers.js';

/** How long a living worker may take to process the probe. */
const ANSWER_MS = 2_000;

/**
 * Whether a living worker serves the task queue. The server lists a worker for minutes after its end, so
 * this function starts the workflow `probe` and waits for a worker to process it.
 */
export async function hasLiveWorker(client: Client, taskQueue: string): Promise<boolean> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  if (livePollers(pollers, Date.now()).length === 0) return false;
  return await processesProbe(client, taskQueue);
}

async function processesProbe(client: Client, taskQueue: string): Promise<boolean> {
  const handle = await client.workflow.start('probe', {
    taskQueue,
    workflowId: `perdure-probe-${randomUUID()}`,
    // A worker that comes later must not process the probe.
    workflowExecutionTimeout: ANSWER_MS,
    workflowTaskTimeout: 1_000,
    staticSummary: 'is a worker alive?',
  });
  const controller = new AbortController();
  const { workflowId, firstExecutionRunId: runId } = handle;
  const processed = client.connection
    .withAbortSignal(controller.signal, () => isProcessed(client, { workflowId, runId }))
    .catch(() => false);
  const late = pause(ANSWER_MS, false, { signal: controller.signal }).catch(() => false);
  try {
    return await Promise.race([processed, late]);
  } finally {
    controller.abort();
  }
}

/**
 * Waits until the history shows that a worker has processed the workflow. A worker with other workflows
 * may not know `probe`: it fails the task, and is alive nevertheless.
 */
async function isProcessed(
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
    const isDone = page.history?.events?.some(
      (event) =>
        event.workflowTaskCompletedEventAttributes ?? event.workflowTaskFailedEventAttributes,
    );
    if (isDone) return true;
    nextPageToken = page.nextPageToken;
  } while (nextPageToken.length > 0);
  return false;
}
