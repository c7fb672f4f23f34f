import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import { optionalTsToMs } from '@temporalio/common/lib/time.js';

/** Who has lately asked a task queue for work; it may be gone by now. */
export interface Poller {
  /** `pid@host`, unless the worker was given a name. */
  readonly identity: string;
  /** Unix time in ms, by the server. */
  readonly lastPollAt: number;
  /** It ran on this machine and has ended; the server lists it for some minutes more. */
  readonly gone: boolean;
  /** Which build of a deployment it says it is; null without worker versioning. */
  readonly build: Build | null;
}

/** A build of a deployment, as the server routes by it. */
export interface Build {
  readonly deploymentName: string;
  readonly buildId: string;
}

/** A task queue as the server sees it. */
export interface QueueState {
  readonly pollers: readonly Poller[];
  /** On which new runs begin; null where workers without versioning get them. */
  readonly current: Build | null;
}

/** A worker that lives polls at least this often, even when there is nothing to do. */
export const POLL_EVERY_MS = 70_000;

/** Those that ask for workflow tasks, newest poll first. The server forgets them after some minutes. */
export async function listPollers(client: Asked, queue: Queue): Promise<readonly Poller[]> {
  return (await readQueueState(client, queue)).pollers;
}

type Asked = Pick<Client, 'workflowService'>;

interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

/** The same, and where new runs begin. */
export async function readQueueState(
  { workflowService }: Asked,
  { namespace, taskQueue }: Queue,
): Promise<QueueState> {
  const { pollers, versioningInfo } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
  });
  return {
    pollers: (pollers ?? [])
      .map(({ identity, lastAccessTime, deploymentOptions }) => ({
        identity: identity ?? '',
        lastPollAt: optionalTsToMs(lastAccessTime) ?? 0,
        gone: isGoneFromHere(identity ?? ''),
        build: claimed(deploymentOptions),
      }))
      .toSorted((a, b) => b.lastPollAt - a.lastPollAt),
    current: built(versioningInfo?.currentDeploymentVersion),
  };
}

/** As Temporal's API numbers the modes of workers. */
const VERSIONED = 2;

/** A worker may name its build without asking to be treated by it. */
function claimed(
  options: (Named & { workerVersioningMode?: unknown }) | null | undefined,
): Build | null {
  return options?.workerVersioningMode === VERSIONED ? built(options) : null;
}

interface Named {
  readonly deploymentName?: string | null;
  readonly buildId?: string | null;
}

function built(version: Named | null | undefined): Build | null {
  const { deploymentName, buildId } = version ?? {};
  return deploymentName && buildId ? { deploymentName, buildId } : null;
}

/** Those of them that may be there still. */
export function livePollers(pollers: readonly Poller[], now: number): readonly Poller[] {
  return pollers.filter(({ gone, lastPollAt }) => !gone && now - lastPollAt < POLL_EVERY_MS);
}

/** A process of this machine can be looked up; nothing can be said of others. */
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
