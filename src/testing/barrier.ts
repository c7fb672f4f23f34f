/** A gate at which answers of the stub wait until a test opens it. */
export interface Barrier {
  /** Resolves when the first one has come. */
  readonly reached: Promise<void>;
  /** Resolves when so many have come, since the start. */
  reachedBy(count: number): Promise<void>;
  /** How many have come, since the start. */
  readonly arrived: number;
  /** How many are held now; one whose client has gone away is held no more. */
  readonly waiting: number;
  /** Opens it for good: whoever waits goes on, whoever comes later is not held. */
  release(): void;
}

export interface Gate {
  readonly barrier: Barrier;
  /** Resolves when the barrier opens; rejects with the signal's reason when that aborts first. */
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
      const leave = (): void => {
        held.delete(pass);
        reject(signal.reason);
      };
      const pass = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
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
