import { createAttemptLog, type AttemptLog } from './attempt-log.js';
import { attemptKey, type LiveAttempt } from './attempt.js';
import type { DeltaBatch } from './delta.js';

/**
 * The number of calls that are kept before the history shows them. It never shows those of lost
 * workers.
 */
const KEPT_UNKNOWN = 8;

/** An attempt for which a worker has sent something. */
export interface KnownAttempt {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
}

/**
 * Orders live deltas, which come from any worker at any time, by the history: the deltas of a call
 * come after the call's start and never after its end, and no attempt comes after a later one.
 */
export interface CallOrder {
  /** Receives a batch from a worker. Returns whether it adds anything to an open call. */
  receive(batch: DeltaBatch): boolean;
  /** Records that the history shows the start of a call. */
  open(call: string): void;
  /** Records that the history shows the end of a call, with any result. */
  close(call: string): void;
  /** Returns the newest attempt of the open call; null if no worker has sent anything for one. */
  current(): KnownAttempt | null;
}

export function createCallOrder(): CallOrder {
  const known = new Map<string, KnownAttempt>();
  const open = new Set<string>();

  const dropOldUnknown = (): void => {
    const unknown = [...known.keys()].filter((call) => !open.has(call));
    for (const call of unknown.slice(0, -KEPT_UNKNOWN)) known.delete(call);
  };

  return {
    receive({ attempt, deltas }) {
      const call = attemptKey(attempt);
      const newest = known.get(call);
      if (newest !== undefined && attempt.attempt < newest.attempt.attempt) return false;
      const isNew = newest === undefined || attempt.attempt > newest.attempt.attempt;
      const entry = isNew ? { attempt, log: createAttemptLog() } : newest;
      if (isNew) known.set(call, entry);
      const fresh = entry.log.receive(deltas);
      dropOldUnknown();
      return open.has(call) && (isNew || fresh.length > 0);
    },
    open: (call) => void open.add(call),
    close(call) {
      open.delete(call);
      known.delete(call);
    },
    current() {
      for (const call of open) {
        const newest = known.get(call);
        if (newest !== undefined) return newest;
      }
      return null;
    },
  };
}
