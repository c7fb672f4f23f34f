import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';

/** A worker that lives polls at least this often; one that was listed before may be dead. */
const POLL_MS = 70_000;
/** How long a living worker may take to answer. */
const ANSWER_MS = 2_000;

/**
 * Whether a worker works on the task queue. The server's list alone does not tell: a worker that is
 * gone stays on it for minutes, so one that polled lately is asked to run the workflow `probe`.
 */
export async function isWorked(client: Client, taskQueue: string): Promise<boolean> {
  return (await hasRecentPoller(client, taskQueue)) && (await answersProbe(client, taskQueue));
}

async function hasRecentPoller(client: Client, taskQueue: string): Promise<boolean> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
  });
  const since = Date.now() - POLL_MS;
  return (pollers ?? []).some(
    ({ lastAccessTime, identity }) =>
      Number(lastAccessTime?.seconds ?? 0) * 1_000 > since && !isGoneFromHere(identity ?? ''),
  );
}

/** Workers are known as `pid@host`; of one on this machine it can be seen at once that it is gone. */
function isGoneFromHere(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.*)$/.exec(identity) ?? [];
  if (pid === undefined || host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
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
