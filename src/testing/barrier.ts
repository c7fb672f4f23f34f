/** A point at which answers of the stub wait until a test releases them. */
export interface Barrier {
  /** Resolves when the first answer has arrived. */
  readonly reached: Promise<void>;
  /** Resolves when `count` answers have arrived in total. */
  reachedBy(count: number): Promise<void>;
  /** The number of answers that have arrived in total. */
  readonly arrived: number;
  /** The number of answers that wait now, without those whose client has disconnected. */
  readonly waiting: number;
  /** Opens the barrier permanently: waiting answers continue, and later ones do not wait. */
  release(): void;
}

export interface Gate {
  readonly barrier: Barrier;
  /** Resolves when the barrier opens; rejects with the signal's reason if that aborts first. */
  wait(signal: AbortSignal): Promise<void>;
}

interface Watcher {
  readonly count: number;
  readonly notify: () => void;
}

export function createGate(): Gate {
  let arrived = 0;
  let watchers: readonly Watcher[] = [];
  let isOpen = false;
  const held = new Set<() => void>();

  const reachedBy = (count: number): Promise<void> =>
    new Promise((notify) => {
      if (arrived >= count) notify();
      else watchers = [...watchers, { count, notify }];
    });

  const arrive = (): void => {
    arrived += 1;
    for (const watcher of watchers) if (watcher.count <= arrived) watcher.notify();
    watchers = watchers.filter((watcher) => watcher.count > arrived);
  };

  const hold = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        held.delete(pass);
        reject(signal.reason);
      };
      const pass = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      signal.addEventListener('abort', abort, { once: true });
      held.add(pass);
    });

  return {
    barrier: {
      reached: reachedBy(1),
      reachedBy,
      get arrived() {
        return arrived;
      },
      get waiting() {
        return held.size;
      },
      release() {
        isOpen = true;
        for (const pass of held) pass();
        held.clear();
      },
    },
    async wait(signal) {
      signal.throwIfAborted();
      const opened = isOpen ? undefined : hold(signal);
      arrive();
      await opened;
    },
  };
}
