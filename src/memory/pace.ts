import type { VirtualClock } from './clock.js';

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
