/** A seeded source of numbers from 0 to 1: the same seed gives the same sequence of faults. */
export type Random = () => number;

/** Mulberry32 (Tommy Ettinger, public domain): 32 bits of state are enough for choosing faults. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns an integer from `least` up to, but not including, `below`. */
export function integer(random: Random, least: number, below: number): number {
  return least + Math.floor(random() * (below - least));
}
