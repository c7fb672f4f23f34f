import type { Client } from '@temporalio/client';
import { listWorkflows } from '../../temporal/server-answers.js';
import type { Build } from '../../temporal/pollers.js';

/** A running run, with the queue and the build that can continue it. */
export interface OpenRun {
  readonly id: string;
  readonly taskQueue: string;
  /** The only build that can continue the run; null if the run is not pinned. */
  readonly pinnedTo: Build | null;
}

/** The visibility query for the running runs of a namespace. */
export const OPEN_RUNS_QUERY = "ExecutionStatus = 'Running' AND WorkflowType = 'agent'";

/** Returns up to `limit` running runs of the namespace, and whether there are more. */
export async function listOpenRuns(
  client: Client,
  limit: number,
): Promise<{ readonly runs: readonly OpenRun[]; readonly more: boolean }> {
  const runs: OpenRun[] = [];
  for await (const { info } of listWorkflows(client, OPEN_RUNS_QUERY)) {
    const { workflowId: id, taskQueue, searchAttributes } = info;
    if (runs.length === limit) return { runs, more: true };
    runs.push({ id, taskQueue, pinnedTo: pinnedBuild(searchAttributes) });
  }
  return { runs, more: false };
}

/** Reads the build from search attributes that the server sets in every namespace. */
function pinnedBuild(
  attributes: Readonly<Record<string, readonly unknown[] | undefined>>,
): Build | null {
  const [behavior] = attributes['TemporalWorkflowVersioningBehavior'] ?? [];
  const [version] = attributes['TemporalWorkerDeploymentVersion'] ?? [];
  if (behavior !== 'Pinned' || typeof version !== 'string') return null;
  // The name of a deployment contains no colon.
  const colon = version.indexOf(':');
  if (colon === -1) return null;
  return { deploymentName: version.slice(0, colon), buildId: version.slice(colon + 1) };
}
