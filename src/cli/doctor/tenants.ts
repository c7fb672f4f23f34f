import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';
import { msToTs } from '../../temporal/sdk-internals.js';
import type { CheckTarget, Finding } from './finding.js';

/*
 * A server that does not know fair shares accepts the key of a tenant and ignores it, and no setting of the
 * server can be read. So one tenant queues much work, another a little, and doctor takes some of it.
 */

const NAME = 'tenants';
/** With four partitions, the default of servers, ten of these wait before the first of the others. */
const OF_MANY = 40;
const OF_FEW = 4;
/** If the server takes turns, some of these are of the other tenant. */
const TAKEN = 12;
/** How long one poll may take; work is there already. */
const POLL_MS = 5_000;
/** The server ends the workflows by then, should doctor be killed before it deletes them. */
const MAX_MS = 60_000;
/** The type of the workflows. No worker has it, and none polls their task queue. */
const TYPE = 'perdure-doctor';
const FIX =
  'set `matching.enableFairness: true` in the dynamic configuration of the server (version 1.29 or later), or turn on ' +
  'fairness for the namespace in Temporal Cloud';

/**
 * Finds out by effect whether the server divides its work between tenants. It starts workflows on a task
 * queue of their own, and deletes them.
 */
export async function tenantsFinding(
  connection: Connection,
  { namespace }: Pick<CheckTarget['server'], 'namespace'>,
): Promise<Finding> {
  const name = `${TYPE}-${randomUUID()}`;
  const { workflowService: service } = connection;
  const ids: string[] = [];
  const start = async (tenant: string): Promise<void> => {
    const workflowId = `${name}-${ids.length}`;
    ids.push(workflowId);
    await service.startWorkflowExecution({
      namespace,
      workflowId,
      workflowType: { name: TYPE },
      taskQueue: { name },
      requestId: randomUUID(),
      workflowExecutionTimeout: msToTs(MAX_MS),
      priority: { fairnessKey: tenant },
    });
  };
  const of = async (tenant: string, count: number): Promise<void> => {
    const begun = await Promise.allSettled(
      Array.from({ length: count }, async () => await start(tenant)),
    );
    const failed = begun.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  };
  let few = 0;
  let taken = 0;
  try {
    await of('many', OF_MANY);
    const before = ids.length;
    await of('few', OF_FEW);
    const ofFew = new Set(ids.slice(before));
    for (; taken < TAKEN; taken += 1) {
      const request = { namespace, taskQueue: { name }, identity: TYPE };
      // The server refuses a poll without a deadline.
      const task = await connection.withDeadline(
        Date.now() + POLL_MS,
        async () => await service.pollWorkflowTaskQueue(request),
      );
      const id = task.workflowExecution?.workflowId ?? '';
      // An empty answer: the server hands out its work slowly, so nothing is known of the order.
      if (id === '') break;
      if (ofFew.has(id)) few += 1;
    }
  } finally {
    const remove = async (workflowId: string): Promise<void> => {
      const workflowExecution = { workflowId };
      await service.deleteWorkflowExecution({ namespace, workflowExecution });
    };
    await Promise.allSettled(ids.map(remove));
  }
  if (taken < TAKEN) {
    const text = `not known: the server handed out ${taken} of ${TAKEN} pieces of work; try again when it is less busy`;
    return { name: NAME, level: 'note', text, data: { taken } };
  }
  const data = { taken: TAKEN, ofOthers: few };
  if (few > 0) {
    return { name: NAME, level: 'ok', text: 'the server takes the work of each in turn', data };
  }
  const text = `the server ignores them: whoever comes first is served first (of ${TAKEN} pieces of work, none was that of the second tenant)`;
  return { name: NAME, level: 'note', text, fix: FIX, data };
}
