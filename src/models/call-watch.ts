/** Why a watch ended a call. */
export type Expiry = 'timeout' | 'idle';

/** The clocks of one request, and the one signal that ends it. */
export interface CallWatch {
  /** Aborts when the caller's signal does, or a clock runs out. */
  readonly signal: AbortSignal;
  /** Bytes have come: the idle clock starts anew; it does not run before the first call. */
  progress(): void;
  /** A model that thinks may be silent for longer than one that speaks; at first it is taken to think. */
  mind(state: { readonly thinking: boolean }): void;
  expiry(): Expiry | null;
  /** Milliseconds of the clock, as it was last set. */
  limitMs(expiry: Expiry): number;
  /** Must be called when the request is over: frees the timers and leaves the caller's signal. */
  stop(): void;
}

/** The longest delay that a timer can hold; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function timer(action: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(action, Math.min(delayMs, LONGEST_TIMER_MS));
}

/**
 * Watches one request. Not `AbortSignal.any`: the caller's signal may outlive thousands of requests
 * and would gather their listeners.
 */
export function watchCall(
  caller: AbortSignal,
  limits: {
    readonly timeoutMs: number;
    readonly idleMs: number;
    /** Of a model that thinks; default: as long as the whole call. */
    readonly thinkingMs?: number;
  },
): CallWatch {
  const controller = new AbortController();
  let expiry: Expiry | null = null;
  let idle: NodeJS.Timeout | undefined;
  const { thinkingMs = limits.timeoutMs } = limits;
  let idleMs = thinkingMs;
  const expire = (reason: Expiry): void => {
    expiry ??= reason;
    controller.abort();
  };
  const follow = (): void => controller.abort();
  caller.addEventListener('abort', follow, { once: true });
  const total = timer(() => expire('timeout'), limits.timeoutMs);
  const setIdle = (): void => {
    clearTimeout(idle);
    idle = timer(() => expire('idle'), idleMs);
  };
  return {
    signal: controller.signal,
    progress() {
      if (idle === undefined) setIdle();
      else idle.refresh();
    },
    mind({ thinking }) {
      const wanted = thinking ? thinkingMs : limits.idleMs;
      if (wanted === idleMs) return;
      idleMs = wanted;
      if (idle !== undefined) setIdle();
    },
    expiry: () => expiry,
    limitMs: (which) => (which === 'idle' ? idleMs : limits.timeoutMs),
    stop() {
      clearTimeout(total);
      clearTimeout(idle);
      caller.removeEventListener('abort', follow);
    },
  };
}
