/**
 * What a timer waits for:
 *
 * - `workflow`: a timer of workflow code, such as the expiry of a request
 * - `script`: an action of the test at a certain time
 * - `retry`: the next attempt at an activity
 * - `timeout`: the end of the time of an attempt that is still running
 * - `lost`: the moment at which the server notices that a worker has died
 */
type TimerKind = 'workflow' | 'script' | 'retry' | 'timeout' | 'lost';

/** A timer that has not fired. */
interface Timer {
  /** Unix time in ms. */
  readonly at: number;
  readonly kind: TimerKind;
}

/** A timer that is set. */
interface SetTimer extends Timer {
  /** Whether its time has really passed since it was set, or what was left of it since the clock moved. */
  readonly isOver: () => boolean;
}

/** A virtual clock, which moves only when it is advanced to its next timer. */
export interface VirtualClock {
  /** Returns the Unix time in ms. */
  readonly now: () => number;
  /** Sets a timer. Returns a function that cancels it. */
  set(timer: Timer, fire: () => void): () => void;
  /** The timers that have not fired, in the order in which they fire. */
  pending(): readonly SetTimer[];
  /** Moves to the next timer and fires it. Returns false if there is none. */
  advance(): boolean;
}

interface Entry extends SetTimer {
  readonly order: number;
  readonly fire: () => void;
}

/** Creates a clock that starts at this Unix time in ms. */
export function createClock(start: number): VirtualClock {
  const entries = new Set<Entry>();
  let now = start;
  let order = 0;
  let movedAt = performance.now();
  const sorted = (): readonly Entry[] =>
    [...entries].toSorted((one, other) => one.at - other.at || one.order - other.order);
  return {
    now: () => now,
    set({ at, kind }, fire) {
      order += 1;
      const [setAt, waitMs] = [performance.now(), Math.ceil(at) - now];
      const isOver = (): boolean => {
        const passedMs = performance.now() - setAt;
        return passedMs >= waitMs || Math.min(passedMs, performance.now() - movedAt) >= at - now;
      };
      const entry = { at: Math.ceil(at), kind, order, fire, isOver };
      entries.add(entry);
      return () => void entries.delete(entry);
    },
    pending: sorted,
    advance() {
      const [next] = sorted();
      if (next === undefined) return false;
      entries.delete(next);
      now = Math.max(now, next.at);
      movedAt = performance.now();
      next.fire();
      return true;
    },
  };
}
