import { collectGarbage } from './collect-garbage.js';

/** What a process says of itself, whenever it says anything. */
export interface Reading {
  /** Unix time in milliseconds. */
  readonly at: number;
  /** Processor time of all its threads since it began. */
  readonly cpuMs: number;
  /** Memory that it holds, all threads. */
  readonly rssBytes: number;
}

/** Told to the process that started this one, with a `Reading`. */
export function tellParent(event: string): void {
  const { user, system } = process.cpuUsage();
  const reading: Reading = {
    at: Date.now(),
    cpuMs: (user + system) / 1_000,
    rssBytes: process.memoryUsage.rss(),
  };
  process.send?.({ event, ...reading });
}

/** Says that the worker polls, and serves until the parent asks for the end or is gone. */
export async function serveAsChild(worker: {
  readonly stopped: Promise<void>;
  shutdown(): Promise<void>;
}): Promise<void> {
  const end = (): void => void worker.shutdown().catch(() => process.exit(1));
  process.once('SIGTERM', end);
  process.once('disconnect', end);
  process.on('message', (asked) => {
    if (asked === 'read') tellParent('read');
    if (asked === 'settle') void collectGarbage().then(() => tellParent('settled'));
  });
  tellParent('ready');
  await worker.stopped;
  // The channel to the parent would keep the process alive.
  process.exit(0);
}
