import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import type { RunStatus } from '../core/status.js';
import type { Projection } from '../history/projection.js';
import type { RunReading } from '../history/read-run.js';
import type { OpenRequest } from './memo-requests.js';
import { listRequests } from './requests.js';
import { toRunStatus } from './status.js';

/** The status of a run, with the requests of the runs that it waits for. */
export interface ReadStatus extends RunStatus {
  /**
   * The open requests of the runs of called agents below this one, oldest first. Each is decided on
   * its own `run`. Absent if there are none, or if no called agent is working.
   */
  readonly below?: readonly OpenRequest[];
}

/** The activity under which a projection has the run of a called agent. */
const CALLED = 'agent';
/** The activity that notifies a person of a request. */
const NOTICE = 'notifyRequest';

/** Whether a called agent is working for the run. */
export function awaitsAgent({ inFlight, ended }: Pick<Projection, 'inFlight' | 'ended'>): boolean {
  return ended === null && [...inFlight.values()].some(({ activity }) => activity === CALLED);
}

/**
 * Whether the run only waits for called agents. A notice about a request does not count as work.
 */
export function awaitsOnlyAgents(view: Pick<Projection, 'inFlight' | 'ended'>): boolean {
  const idle = [CALLED, NOTICE];
  return (
    awaitsAgent(view) &&
    [...view.inFlight.values()].every(({ activity }) => idle.includes(activity))
  );
}

/**
 * Whether nothing is in flight, except notices about requests, which are retried for a long time.
 */
export function isIdle({ inFlight }: Pick<Projection, 'inFlight'>): boolean {
  return [...inFlight.values()].every(({ activity }) => activity === NOTICE);
}

/**
 * Returns the status of a run and, if it waits for a called agent, the requests below it. Needs no
 * worker.
 */
export async function readStatus(
  client: Client,
  run: RunReading,
  now: number,
): Promise<ReadStatus> {
  const status = toRunStatus(run, now);
  const { id, description } = run;
  if (description === null || !awaitsAgent(run.view)) return status;
  const below = await requestsBelow(client, { id, description });
  return below.length === 0 ? status : { ...status, below };
}

/** Returns the open requests of the runs below a run, by one visibility query. */
export async function requestsBelow(
  client: Client,
  { id, description }: { readonly id: string; readonly description: WorkflowExecutionDescription },
): Promise<readonly OpenRequest[]> {
  const root = description.rootExecution?.workflowId || id;
  const { requests } = await listRequests(client, { root });
  // The id of a called run begins with that of its caller.
  return requests.filter(({ run }) => (root === id ? run !== id : run.startsWith(`${id}/`)));
}
