import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { alive, pollersOf } from './pollers.js';

/** How long a living worker may take to answer. */
const ANSWER_MS = 2_000;

/**
 * Whether a worker works on the task queue. The server's list alone does not tell: a worker that is
 * gone stays on it for minutes, so one that polled lately is asked to run the workflow `probe`.
 */
export async function isWorked(client: Client, taskQueue: string): Promise<boolean> {
  const pollers = await pollersOf(client, { namespace: client.options.namespace, taskQueue });
  if (alive(pollers, Date.now()).length === 0) return false;
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
  const asked = client.connection.withAbortSignal(given.signal, () => handle.result());
  const answered = asked.then(
    () => true,
    () => false,
  );
  const late = pause(ANSWER_MS, false, { signal: given.signal }).catch(() => false);
  try {
    return await Promise.race([answered, late]);
  } finally {
    given.abort();
  }
}
