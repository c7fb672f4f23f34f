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
}

/** A worker that lives polls at least this often, even when there is nothing to do. */
export const POLL_EVERY_MS = 70_000;

/** Those that ask for workflow tasks, newest poll first. The server forgets them after some minutes. */
export async function pollersOf(
  { workflowService }: Pick<Client, 'workflowService'>,
  { namespace, taskQueue }: { readonly namespace: string; readonly taskQueue: string },
): Promise<readonly Poller[]> {
  const { pollers } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
  });
  return (pollers ?? [])
    .map(({ identity, lastAccessTime }) => ({
      identity: identity ?? '',
      lastPollAt: optionalTsToMs(lastAccessTime) ?? 0,
      gone: isGoneFromHere(identity ?? ''),
    }))
    .toSorted((a, b) => b.lastPollAt - a.lastPollAt);
}

/** Those of them that may be there still. */
export function alive(pollers: readonly Poller[], now: number): readonly Poller[] {
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
