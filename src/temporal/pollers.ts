import { hasExited } from './exited.js';
import type { Client } from '@temporalio/client';
import { optionalTsToMs } from './sdk-internals.js';

/** A worker that polled a task queue recently. It may have ended since. */
export interface Poller {
  /** `pid@host`, unless the worker has a name of its own. */
  readonly identity: string;
  /**
   * Unix time in ms by the clock of this machine, as far as its difference from the server's clock
   * is known.
   */
  readonly lastPollAt: number;
  /** Whether its process on this machine has ended. The server lists it for a few more minutes. */
  readonly gone: boolean;
  /** The build that it reports; null without worker versioning. */
  readonly build: Build | null;
}

/** A build of a deployment, by which the server routes work. */
export interface Build {
  readonly deploymentName: string;
  readonly buildId: string;
}

/** A task queue as the server knows it. */
export interface QueueState {
  readonly pollers: readonly Poller[];
  /** The build that gets new runs; null if unversioned workers get them. */
  readonly current: Build | null;
}

/** A live worker polls at least this often, even when there is nothing to do. */
export const POLL_EVERY_MS = 70_000;

/**
 * Lists the workers that poll for workflow tasks, newest poll first. The server keeps them for a
 * few minutes.
 */
export async function listPollers(
  client: WorkflowServiceClient,
  queue: Queue,
): Promise<readonly Poller[]> {
  return (await readQueueState(client, queue)).pollers;
}

type WorkflowServiceClient = Pick<Client, 'workflowService'>;

interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

/** Returns the pollers, newest poll first, and the build that gets new runs. */
export async function readQueueState(
  { workflowService }: WorkflowServiceClient,
  { namespace, taskQueue }: Queue,
): Promise<QueueState> {
  const { pollers, versioningInfo } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
  });
  const found = (pollers ?? []).map(({ lastAccessTime }) => optionalTsToMs(lastAccessTime) ?? 0);
  const aheadMs = aheadOfServer(Math.max(0, ...found), Date.now());
  return {
    pollers: (pollers ?? [])
      .map(({ identity, lastAccessTime, deploymentOptions }) => ({
        identity: identity ?? '',
        lastPollAt: (optionalTsToMs(lastAccessTime) ?? 0) + aheadMs,
        gone: isGone(identity ?? ''),
        build: versionedBuild(deploymentOptions),
      }))
      .toSorted((a, b) => b.lastPollAt - a.lastPollAt),
    current: toBuild(versioningInfo?.currentDeploymentVersion),
  };
}

/** The server forgets a poller within this time after its last poll. */
const KEPT_MS = 6 * 60_000;

/**
 * Returns by how many ms this machine's clock is ahead of the server's, judged by the newest poll:
 * it is not in the future, and no older than the server's memory. 0 if both clocks may be right.
 */
function aheadOfServer(newestPollAt: number, now: number): number {
  const ageMs = now - newestPollAt;
  return newestPollAt > 0 && (ageMs < 0 || ageMs > KEPT_MS) ? ageMs : 0;
}

/** Temporal's number of the versioned mode of workers. */
const VERSIONED = 2;

/** Returns null for a worker that reports a build but is not versioned. */
function versionedBuild(
  options: (BuildFields & { workerVersioningMode?: unknown }) | null | undefined,
): Build | null {
  return options?.workerVersioningMode === VERSIONED ? toBuild(options) : null;
}

interface BuildFields {
  readonly deploymentName?: string | null;
  readonly buildId?: string | null;
}

function toBuild(version: BuildFields | null | undefined): Build | null {
  const { deploymentName, buildId } = version ?? {};
  return deploymentName && buildId ? { deploymentName, buildId } : null;
}

/** Returns the pollers that may still be alive. */
export function livePollers(pollers: readonly Poller[], now: number): readonly Poller[] {
  return pollers.filter(({ gone, lastPollAt }) => !gone && now - lastPollAt < POLL_EVERY_MS);
}

/** Returns whether the process of a poller has ended. False for other machines. */
function isGone(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.*)$/.exec(identity) ?? [];
  if (pid === undefined || host === undefined) return false;
  return hasExited({ pid: Number(pid), host }, { ranAsThisUser: false });
}
