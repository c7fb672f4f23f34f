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

/** Lets virtual time pass only when nothing else can happen. */
export interface Pace {
  /** Code begins to run. */
  readonly begin: () => void;
  /** Code has ended, or waits for something that only other code can do. */
  readonly end: () => void;
  /** Resolves when nothing is running. Rejects with the error given to `fail`. */
  idle(): Promise<void>;
  readonly fail: (error: unknown) => void;
  /** Ends real time. */
  stop(): void;
}

/** How often real time is looked at, in ms. */
const TICK_MS = 20;

/**
 * Creates the pace of a run in memory. While code runs, the clock stands still, so the result does not depend
 * on the speed of this machine. But a timer whose time has really passed fires meanwhile: a tool that
 * hangs reaches its timeout.
 */
export function createPace(clock: VirtualClock): Pace {
  let running = 0;
  let failure: { readonly error: unknown } | null = null;
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const all = waiting;
    waiting = [];
    for (const one of all) one();
  };
  const isIdle = (): boolean => running === 0 || failure !== null;
  const ticks = setInterval(() => {
    const [next] = clock.pending();
    if (running > 0 && next?.isOver() === true) clock.advance();
  }, TICK_MS);
  return {
    begin() {
      running += 1;
    },
    end() {
      running -= 1;
      if (running === 0) setImmediate(() => isIdle() && wake());
    },
    async idle() {
      for (;;) {
        if (failure !== null) throw failure.error;
        // What has just ended may begin something else.
        await new Promise<void>((resolve) => setImmediate(resolve));
        if (failure === null && running === 0) return;
        if (failure === null) await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    fail(error) {
      failure ??= { error };
      wake();
    },
    stop: () => clearInterval(ticks),
  };
}
