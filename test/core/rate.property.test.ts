import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Pace, takeBlock, UNUSED } from '../../src/core/rules/rate.js';

const REQUESTS = 60;
const PER_MS = 60_000;
const END_MS = 600_000;
const RATE = { requests: REQUESTS, perMs: PER_MS };

/** Returns the times of all uses of `holders` that always have work, each late by up to `lateMs`. */
function usesOf(holders: number, late: () => number): number[] {
  let pace: Pace = UNUSED;
  const asks = Array.from({ length: holders }, (_, index) => index);
  const uses: number[] = [];
  for (;;) {
    asks.sort((one, other) => one - other);
    const now = asks.shift() ?? 0;
    if (now >= END_MS) return uses.sort((one, other) => one - other);
    const taken = takeBlock(pace, { rate: RATE, uses: 10, tokens: 0, owed: 0 }, now);
    pace = taken.pace;
    const { inMs, againMs } = taken.block;
    for (const ms of inMs) uses.push(now + ms + late());
    asks.push(now + Math.max(1, inMs.length === 0 ? againMs : (inMs.at(-1) ?? 0)));
  }
}

/** Returns how many of the uses a provider refuses that counts in a window which slides, or is fixed. */
const PROVIDERS = {
  sliding(times: readonly number[]): number {
    const kept: number[] = [];
    return times.filter((at) => {
      while (kept[0] !== undefined && kept[0] <= at - PER_MS) kept.shift();
      return kept.length >= REQUESTS || kept.push(at) === 0;
    }).length;
  },
  fixed(times: readonly number[]): number {
    const counts = new Map<number, number>();
    return times.filter((at) => {
      const window = Math.floor((at + 17_000) / PER_MS);
      const count = (counts.get(window) ?? 0) + 1;
      counts.set(window, count);
      return count > REQUESTS;
    }).length;
  },
  'by the second'(times: readonly number[]): number {
    let left = 2;
    let before = 0;
    return times.filter((at) => {
      left = Math.min(2, left + ((at - before) * REQUESTS) / PER_MS);
      before = at;
      if (left < 1) return true;
      left -= 1;
      return false;
    }).length;
  },
};

test.each(['sliding', 'fixed', 'by the second'] as const)(
  'a provider that counts %s refuses nothing, however many holders there are, and nearly all is used',
  (kind) => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 50 }),
        (holders, delays) => {
          let count = 0;
          const times = usesOf(holders, () => delays[count++ % delays.length] ?? 0);
          expect(PROVIDERS[kind](times)).toBe(0);
          expect(times.length).toBeGreaterThanOrEqual(0.95 * REQUESTS * (END_MS / PER_MS));
        },
      ),
    );
  },
);

test('tokens are reserved by estimate and settled with the next ask', () => {
  const rate = { tokens: 1_000, perMs: 60_000 };
  const ask = { rate, uses: 1, tokens: 100, owed: 0 };
  const first = takeBlock(UNUSED, ask, 0);
  const gap = (owed: number): number =>
    takeBlock(first.pace, { ...ask, owed }, 6_000).block.inMs[0] ?? Infinity;
  expect(gap(-50)).toBe(0);
  expect(gap(0)).toBeCloseTo(6_000 / 0.97 - 6_000);
  expect(takeBlock(first.pace, { ...ask, owed: 200 }, 6_000).block.inMs).toEqual([]);
});

test('a block ends with its window, so a lost holder costs no more than that', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 1, max: 100_000 }),
      (requests, uses, tokens) => {
        const rate = { requests, tokens: 1_000_000, perMs: PER_MS };
        const { inMs } = takeBlock(UNUSED, { rate, uses, tokens, owed: 0 }, 1).block;
        expect(inMs.length).toBeLessThanOrEqual(uses);
        expect((inMs.at(-1) ?? 0) - (inMs[0] ?? 0)).toBeLessThan(PER_MS / 20);
      },
    ),
  );
});
