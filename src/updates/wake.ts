import type { Client } from '@temporalio/client';
import { wakeSignal } from '../workflows/messages/definitions.js';

const ANSWER_LIMIT_MS = 3_000;

/** A segment of a run. */
interface Segment {
  readonly namespace: string;
  readonly workflowId: string;
  readonly runId: string;
}

/**
 * Wakes a blocked run whose build is no longer the current one of its deployment, so that the run
 * moves to the current build, which may have what it waits for. Temporal repeats the attempts of a
 * blocked run on the build to which the run is pinned, and gives the workflow no task in which it
 * would notice. Asks the server for the run's build, and does nothing if it does not answer. Returns
 * whether it woke the run.
 */
export async function wakeIfMoved(client: Client, segment: Segment): Promise<boolean> {
  const { workflowId, runId } = segment;
  try {
    return await client.withDeadline(Date.now() + ANSWER_LIMIT_MS, async () => {
      const isMoved = await hasMoved(client, segment);
      if (isMoved) await client.workflow.getHandle(workflowId, runId).signal(wakeSignal);
      return isMoved;
    });
  } catch {
    return false;
  }
}

/** Whether the run is pinned to a build that the deployment no longer gives to new runs. */
async function hasMoved(
  { workflowService }: Client,
  { namespace, workflowId, runId }: Segment,
): Promise<boolean> {
  const { workflowExecutionInfo } = await workflowService.describeWorkflowExecution({
    namespace,
    execution: { workflowId, runId },
  });
  const { deploymentVersion: pinned, versioningOverride } =
    workflowExecutionInfo?.versioningInfo ?? {};
  // An operator has chosen the build of a run with an override.
  if (!pinned || versioningOverride) return false;
  const { workerDeploymentInfo } = await workflowService.describeWorkerDeployment({
    namespace,
    deploymentName: pinned.deploymentName ?? '',
  });
  const { currentDeploymentVersion: current, rampingDeploymentVersion: ramping } =
    workerDeploymentInfo?.routingConfig ?? {};
  if (!current) return false;
  return ![current, ramping].some((version) => version?.buildId === pinned.buildId);
}
