import { quoteLargeIntegers } from '../../core/text/json.js';
import { MAX_NODE_TIMER_MS } from '../../validation/check-options.js';
import type { ModelReply } from '../model.js';

/** Maximum calls of one reply. A run executes at most 128 of them. */
const MAX_CALLS = 1_024;
/**
 * Maximum UTF-16 units of text, arguments, and reasoning; the longest legitimate reply has about 2
 * million.
 */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Maximum items of one response, of any type. */
const MAX_ITEMS = 10_000;
/** Maximum events of one stream. */
const MAX_EVENTS = 1_000_000;
/** Maximum brackets and commas of one JSON text; each may become a value of 50 bytes or more. */
const MAX_STRUCTURE = 2_000_000;
/** A shorter text is not searched for structure. */
const SMALL_JSON = MAX_STRUCTURE / 2;

/**
 * A reply exceeds a limit. It is neither used nor requested again, because it has been paid for.
 */
export class ReplyTooLargeError extends Error {
  override readonly name = 'ReplyTooLargeError';
}

/** Counts a reply during assembly. Each method throws a `ReplyTooLargeError` beyond its limit. */
export interface ReplyMeter {
  event(): void;
  call(): void;
  item(): void;
  text(...texts: readonly string[]): void;
}

export function createReplyMeter(): ReplyMeter {
  const counts = { events: 0, calls: 0, items: 0, characters: 0 };
  const add = (what: keyof typeof counts, units: number, limit: number): void => {
    counts[what] += units;
    if (counts[what] > limit) throw new ReplyTooLargeError(`more than ${limit} ${what}`);
  };
  return {
    event: () => add('events', 1, MAX_EVENTS),
    call: () => add('calls', 1, MAX_CALLS),
    item: () => add('items', 1, MAX_ITEMS),
    text(...texts) {
      for (const text of texts) add('characters', text.length, MAX_CHARACTERS);
    },
  };
}

/** Throws a `ReplyTooLargeError` if a reply that was not streamed exceeds a limit. */
export function assertWithinLimits({ text, calls }: ModelReply): void {
  const meter = createReplyMeter();
  meter.text(text);
  for (const { name, arguments: args } of calls) {
    meter.call();
    meter.text(name, args);
  }
}

/**
 * Parses JSON. Throws a `ReplyTooLargeError` if it has too many values, and a `SyntaxError` as
 * `JSON.parse` does.
 */
export function parseBounded(json: string): unknown {
  let structure = 0;
  if (json.length > SMALL_JSON) {
    for (let at = 0; at < json.length; at += 1) {
      const unit = json.charCodeAt(at);
      if (unit === 0x2c || unit === 0x5b || unit === 0x7b) structure += 1;
    }
  }
  if (structure > MAX_STRUCTURE) throw new ReplyTooLargeError(`more than ${MAX_STRUCTURE} values`);
  // Some servers send the arguments of a call as an object; its numbers must stay exact.
  return JSON.parse(quoteLargeIntegers(json));
}

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
