import { collectGarbage } from './collect-garbage.js';

/** The measurements that a process includes in each of its messages. */
export interface Reading {
  /** Unix time in milliseconds. */
  readonly at: number;
  /** CPU time of all its threads since it began. */
  readonly cpuMs: number;
  /** Memory of all its threads. */
  readonly rssBytes: number;
  /** What the main thread uses of its heap. */
  readonly heapBytes: number;
}

/** Sends a message, with a `Reading`, to the parent process. */
export function tellParent(event: string): void {
  const { user, system } = process.cpuUsage();
  const reading: Reading = {
    at: Date.now(),
    cpuMs: (user + system) / 1_000,
    rssBytes: process.memoryUsage.rss(),
    heapBytes: process.memoryUsage().heapUsed,
  };
  process.send?.({ event, ...reading });
}

/** Reports that the worker polls, and serves until the parent asks it to end or is gone. */
export async function serveAsChild(worker: {
  readonly stopped: Promise<void>;
  shutdown(): Promise<void>;
}): Promise<void> {
  const end = (): void => void worker.shutdown().catch(() => process.exit(1));
  process.once('SIGTERM', end);
  process.once('disconnect', end);
  process.on('message', (asked) => {
    if (asked === 'read') tellParent('read');
    if (asked === 'collect') void collectGarbage().then(() => tellParent('collected'));
  });
  tellParent('ready');
  await worker.stopped;
  // The channel to the parent would otherwise keep the process alive.
  process.exit(0);
}
