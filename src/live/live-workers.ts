import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { readDeltas } from './read-deltas.js';
import { reachableUrl } from './live-hosts.js';
import type { LiveSource } from './run-stream.js';
import { createWorkerFinder, forget, hasExited, type KnownWorker } from './worker-files.js';

/** A worker that has just begun is found after this time; what it was told until then is told later. */
const LOOK_MS = 500;

/**
 * The workers that tell of themselves in PERDURE_HOME, each but the one at `except`: those of this machine,
 * and those at `hosts`, which the user has named.
 */
export function liveWorkers(
  home: string,
  { except, hosts = [] }: { readonly except?: string; readonly hosts?: readonly string[] } = {},
): LiveSource {
  const look = createWorkerFinder(home);
  return ({ id, taskQueue, namespace }, { frame, signal }) => {
    const reading = new Set<string>();
    const read = async (worker: KnownWorker, url: string): Promise<void> => {
      reading.add(worker.file);
      try {
        await readDeltas({ url, token: worker.token }, id, { frame, signal });
      } catch (error) {
        if (isRefused(error) && worker.host === hostname()) await forget(worker);
      } finally {
        // One that is still there is tried again.
        reading.delete(worker.file);
      }
    };
    const watch = async (): Promise<void> => {
      while (!signal.aborted) {
        for (const worker of await look()) {
          if (reading.has(worker.file) || worker.url === except) continue;
          if (worker.taskQueue !== taskQueue || worker.namespace !== namespace) continue;
          const url = reachableUrl(worker, hosts);
          if (url === null) continue;
          if (hasExited(worker)) await forget(worker);
          else void read(worker, url);
        }
        await pause(LOOK_MS, undefined, { signal });
      }
    };
    // It ends with the signal.
    watch().catch(() => undefined);
  };
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
