/** Told to the process that started this one; `at`: Unix time in milliseconds. */
export function tellParent(event: string): void {
  process.send?.({ event, at: Date.now() });
}

/** Says that the worker polls, and serves until the parent asks for the end or is gone. */
export async function serveAsChild(worker: {
  readonly stopped: Promise<void>;
  shutdown(): Promise<void>;
}): Promise<void> {
  const end = (): void => void worker.shutdown().catch(() => process.exit(1));
  process.once('SIGTERM', end);
  process.once('disconnect', end);
  tellParent('ready');
  await worker.stopped;
  // The channel to the parent would keep the process alive.
  process.exit(0);
}
