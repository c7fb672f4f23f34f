import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { type ListedWorkflow, listWorkflows } from '../temporal/server-answers.js';
import { queryTerm } from './run-row.js';

type Placed = Pick<WorkflowExecutionInfo, 'workflowId' | 'parentExecution'>;

/** How many ids one query names. */
const AT_ONCE = 50;

/**
 * Returns a function that picks, of listed runs, those that other runs have called. A run that a workflow
 * of your own has started with `runAgent` is none of them, and neither is one whose caller the server has
 * deleted. What it has found out is kept for the next runs.
 */
export function createCallerLookup(
  client: Client,
): (listed: readonly ListedWorkflow[]) => Promise<ReadonlySet<ListedWorkflow>> {
  const isRun = new Map<string, boolean>();
  return async (listed) => {
    for (const { info } of listed) isRun.set(info.workflowId, true);
    const callers = new Set(listed.flatMap(({ info }) => callerOf(info)));
    const unknown = [...callers].filter((id) => !isRun.has(id));
    for (let at = 0; at < unknown.length; at += AT_ONCE) {
      const asked = unknown.slice(at, at + AT_ONCE);
      const found = await runsAmong(client, asked);
      for (const id of asked) isRun.set(id, found.has(id));
    }
    return new Set(
      listed.filter(({ info }) => callerOf(info).some((id) => isRun.get(id) === true)),
    );
  };
}

function callerOf({ parentExecution: caller }: Placed): readonly string[] {
  return caller?.workflowId ? [caller.workflowId] : [];
}

/** Returns which of these are the ids of runs that the server has. */
export async function runsAmong(
  client: Client,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const named = ids.map((id) => queryTerm('WorkflowId', id)).join(' OR ');
  const query = `WorkflowType = 'agent' AND ExecutionStatus != 'ContinuedAsNew' AND (${named})`;
  const found = new Set<string>();
  for await (const { info } of listWorkflows(client, query)) found.add(info.workflowId);
  return found;
}
