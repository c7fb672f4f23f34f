import { MAX_NODE_TIMER_MS } from '../../validation/durations.js';

/** The clock that ended a call. */
export type Expiry = 'timeout' | 'idle';

/** The clocks of one request, and the signal that ends it. */
export interface CallWatch {
  /** Aborts when the caller's signal does, or when a clock expires. */
  readonly signal: AbortSignal;
  /** Restarts the idle clock when bytes arrive; the clock does not run before the first call. */
  progress(): void;
  /**
   * Sets the limit of the idle clock: a model may be silent for longer while it reasons. Initially
   * true.
   */
  setThinking(isThinking: boolean): void;
  expiry(): Expiry | null;
  /** Returns the current limit of the clock in milliseconds. */
  limitMs(expiry: Expiry): number;
  /** Frees the timers and the listener. Must be called at the end of the request. */
  stop(): void;
}

/**
 * Watches one request. It does not use `AbortSignal.any`: the caller's signal may outlive thousands
 * of requests and would collect their listeners.
 */
export function watchCall(
  caller: AbortSignal,
  limits: {
    readonly timeoutMs: number;
    readonly idleMs: number;
    /** The idle limit while the model reasons; default: `timeoutMs`. */
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
  const total = startTimer(() => expire('timeout'), limits.timeoutMs);
  const startIdle = (): void => {
    clearTimeout(idle);
    idle = startTimer(() => expire('idle'), idleMs);
  };
  return {
    signal: controller.signal,
    progress() {
      if (idle === undefined) startIdle();
      else idle.refresh();
    },
    setThinking(isThinking) {
      const limitMs = isThinking ? thinkingMs : limits.idleMs;
      if (limitMs === idleMs) return;
      idleMs = limitMs;
      if (idle !== undefined) startIdle();
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

function startTimer(action: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(action, Math.min(delayMs, MAX_NODE_TIMER_MS));
}
