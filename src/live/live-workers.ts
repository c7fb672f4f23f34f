import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { visible } from '../core/text/summaries.js';
import { reachableUrl } from './live-hosts.js';
import { isPolledHere } from './process-hub.js';
import { readDeltas } from './read-deltas.js';
import type { LiveSource } from './run-stream.js';
import { hasExited } from '../temporal/exited.js';
import { createWorkerFinder, removeFile, type KnownWorker } from './worker-files.js';

/** A new worker is found within this time. It then sends what it has received meanwhile. */
const SCAN_EVERY_MS = 500;
/**
 * The number of scans before a notice: a run that is over, or a worker that is starting, needs
 * none.
 */
const SCANS_BEFORE_NOTICE = 4;

/**
 * The source that reads from all workers announced in PERDURE_HOME, except the one at URL `except`:
 * those of this machine, and those of the machines in `hosts`, which the user has named.
 */
export function liveWorkers(
  home: string,
  {
    except,
    hosts = [],
    unreachable = () => undefined,
  }: {
    readonly except?: string;
    readonly hosts?: readonly string[];
    /** Called once, with the reason and the fix, if no worker of the run can be read. */
    readonly unreachable?: (why: string) => void;
  } = {},
): LiveSource {
  const findWorkers = createWorkerFinder(home);
  return ({ id, taskQueue, namespace }, { batch, unreachable: notice, signal }) => {
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
      for (let scans = 1; !signal.aborted; scans += 1) {
        const announced = (await findWorkers()).filter(
          (worker) => worker.taskQueue === taskQueue && worker.namespace === namespace,
        );
        const isServed = announced.some((worker) => reachableUrl(worker, hosts) !== null);
        if (scans === SCANS_BEFORE_NOTICE && !isServed && !isPolledHere({ taskQueue, namespace })) {
          const why = reason(announced, { id, home });
          notice(why);
          unreachable(why);
        }
        for (const worker of announced) {
          if (reading.has(worker.file) || worker.url === except) continue;
          const url = reachableUrl(worker, hosts);
          if (url === null) continue;
          // Only files of this user are read.
          if (hasExited(worker, { ranAsThisUser: true })) await removeFile(worker);
          else void read(worker, url);
        }
        await pause(SCAN_EVERY_MS, undefined, { signal });
      }
    };
    // Rejects only when the signal aborts.
    scan().catch(() => undefined);
  };
}

/** Returns why no worker can be read. */
function reason(
  announced: readonly KnownWorker[],
  { id, home }: { readonly id: string; readonly home: string },
): string {
  const [worker] = announced;
  const lost = `replies of run ${visible(id)} in progress are not shown until they are complete`;
  if (worker === undefined) {
    return (
      `${lost}: no worker of its task queue announces a live stream in ${home}; use the PERDURE_HOME of the ` +
      'workers, and start them with `live` (commands do)'
    );
  }
  return (
    `${lost}: its worker is on ${visible(worker.host)}; name that machine in PERDURE_LIVE_HOSTS, and let the ` +
    'worker listen there (--live-host)'
  );
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
