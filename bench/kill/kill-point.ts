/**
 * When a worker is killed: this many milliseconds after the nth model call or tool call has reached
 * its destination.
 */
export interface KillPoint {
  /** Counted from 1, over model calls and tool calls alike, in the order of arrival. */
  readonly arrival: number;
  readonly delayMs: number;
}

/** Draws points evenly from the seed. The same seed gives the same points. */
export function killPoints(
  count: number,
  from: { readonly seed: number; readonly arrivals: number; readonly longestDelayMs: number },
): readonly KillPoint[] {
  const random = randomNumbers(from.seed);
  return Array.from({ length: count }, () => ({
    arrival: 1 + Math.floor(random() * from.arrivals),
    delayMs: Math.floor(random() * from.longestDelayMs),
  }));
}

/** The mulberry32 generator: numbers from 0 to 1, evenly distributed. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
