import { callOf, type LiveAttempt } from './attempt.js';
import { createAttemptLog, type AttemptLog } from './attempt-log.js';
import type { Frame } from './delta.js';

/** Attempts of calls that history does not tell of yet; those of lost workers are never told of. */
const KEPT_UNKNOWN = 8;

export interface HeardAttempt {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
}

/**
 * Puts pieces of replies, which come from any worker at any time, in order with what history tells:
 * those of a call come behind its beginning and never behind its end, and those of an attempt never
 * behind a later one.
 */
export interface CallOrder {
  /** Takes what a worker tells. @returns whether there is something new to tell of the current attempt */
  heard(frame: Frame): boolean;
  /** History tells that a call has begun. */
  begun(call: string): void;
  /** History tells that it has ended, however. */
  ended(call: string): void;
  /** The attempt of a call that has begun and not ended; null where nothing was heard of one. */
  current(): HeardAttempt | null;
}

export function createCallOrder(): CallOrder {
  const heard = new Map<string, HeardAttempt>();
  const open = new Set<string>();

  const forgetOthers = (): void => {
    const unknown = [...heard.keys()].filter((call) => !open.has(call));
    for (const call of unknown.slice(0, -KEPT_UNKNOWN)) heard.delete(call);
  };

  return {
    heard({ attempt, pieces }) {
      const call = callOf(attempt);
      const known = heard.get(call);
      if (known !== undefined && attempt.attempt < known.attempt.attempt) return false;
      const isNew = known === undefined || attempt.attempt > known.attempt.attempt;
      const one = isNew ? { attempt, log: createAttemptLog() } : known;
      if (isNew) heard.set(call, one);
      const fresh = one.log.receive(pieces);
      forgetOthers();
      return open.has(call) && (isNew || fresh.length > 0);
    },
    begun: (call) => void open.add(call),
    ended(call) {
      open.delete(call);
      heard.delete(call);
    },
    current() {
      for (const call of open) {
        const known = heard.get(call);
        if (known !== undefined) return known;
      }
      return null;
    },
  };
}
