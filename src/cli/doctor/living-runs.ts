import type { Client } from '@temporalio/client';
import type { Build } from '../../temporal/pollers.js';

/** Where an open run's work is waited for. */
export interface LivingRun {
  readonly id: string;
  readonly taskQueue: string;
  /** The only build that gets its work; null where the run is not pinned to one. */
  readonly pinnedTo: Build | null;
}

const QUERY = "ExecutionStatus = 'Running' AND WorkflowType = 'agent'";

/** The open runs of the namespace, at most so many, and whether there are more. */
export async function livingRuns(
  { workflow }: Pick<Client, 'workflow'>,
  limit: number,
): Promise<{ readonly runs: readonly LivingRun[]; readonly more: boolean }> {
  const runs: LivingRun[] = [];
  for await (const { workflowId: id, taskQueue, searchAttributes } of workflow.list({
    query: QUERY,
  })) {
    if (runs.length === limit) return { runs, more: true };
    runs.push({ id, taskQueue, pinnedTo: pinnedBuild(searchAttributes) });
  }
  return { runs, more: false };
}

/** The server keeps these attributes itself, in every namespace. */
function pinnedBuild(
  attributes: Readonly<Record<string, readonly unknown[] | undefined>>,
): Build | null {
  const [behavior] = attributes['TemporalWorkflowVersioningBehavior'] ?? [];
  const [version] = attributes['TemporalWorkerDeploymentVersion'] ?? [];
  if (behavior !== 'Pinned' || typeof version !== 'string') return null;
  // A name of a deployment holds no colon.
  const colon = version.indexOf(':');
  if (colon === -1) return null;
  return { deploymentName: version.slice(0, colon), buildId: version.slice(colon + 1) };
}
