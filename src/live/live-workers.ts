import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { reachableUrl } from './live-hosts.js';
import { readDeltas } from './read-deltas.js';
import type { LiveSource } from './run-stream.js';
import { createWorkerFinder, hasExited, removeFile, type KnownWorker } from './worker-files.js';

/** A new worker is found within this time. It then sends what it has received meanwhile. */
const SCAN_EVERY_MS = 500;

/**
 * The source that reads from all workers announced in PERDURE_HOME, except the one at URL `except`:
 * those of this machine, and those of the machines in `hosts`, which the user has named.
 */
export function liveWorkers(
  home: string,
  { except, hosts = [] }: { readonly except?: string; readonly hosts?: readonly string[] } = {},
): LiveSource {
  const findWorkers = createWorkerFinder(home);
  return ({ id, taskQueue, namespace }, { batch, signal }) => {
    const reading = new Set<string>();
    const read = async (worker: KnownWorker, url: string): Promise<void> => {
      reading.add(worker.file);
      try {
        await readDeltas({ url, token: worker.token }, id, { batch, signal });
      } catch (error) {
        if (isRefused(error) && worker.host === hostname()) await removeFile(worker);
      } finally {
        // The next scan tries it again if its file is still there.
        reading.delete(worker.file);
      }
    };
    const scan = async (): Promise<void> => {
      while (!signal.aborted) {
        for (const worker of await findWorkers()) {
          if (reading.has(worker.file) || worker.url === except) continue;
          if (worker.taskQueue !== taskQueue || worker.namespace !== namespace) continue;
          const url = reachableUrl(worker, hosts);
          if (url === null) continue;
          if (hasExited(worker)) await removeFile(worker);
          else void read(worker, url);
        }
        await pause(SCAN_EVERY_MS, undefined, { signal });
      }
    };
    // Rejects only when the signal aborts.
    scan().catch(() => undefined);
  };
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
