import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Pace, UNUSED, takeBlock } from '../../src/core/rules/rate.js';
import { NONE_REFUSED, refusedBy } from '../support/allowances.js';

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
    if (now >= END_MS) return uses;
    const taken = takeBlock(pace, { rate: RATE, uses: 10, tokens: 0, owed: 0 }, now);
    pace = taken.pace;
    const { inMs, againMs } = taken.block;
    for (const ms of inMs) uses.push(now + ms + late());
    // Half of the block is used.
    asks.push(now + Math.max(1, inMs[Math.floor(inMs.length / 2)] ?? againMs));
  }
}

test('no kind of provider refuses a use, however many holders there are, and nearly all is used', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 50 }),
      (holders, delays) => {
        let count = 0;
        const times = usesOf(holders, () => delays[count++ % delays.length] ?? 0);
        expect(refusedBy(RATE, times)).toEqual(NONE_REFUSED);
        expect(times.length).toBeGreaterThanOrEqual(0.95 * REQUESTS * (END_MS / PER_MS));
      },
    ),
  );
});

test('tokens are reserved by estimate and settled with the next ask', () => {
  const rate = { tokens: 1_000, perMs: 60_000 };
  const ask = { rate, uses: 1, tokens: 100, owed: 0 };
  const first = takeBlock(UNUSED, ask, 0);
  const next = (owed: number) => takeBlock(first.pace, { ...ask, owed }, 6_000).block;
  expect(next(-50).inMs).toEqual([0]);
  expect(next(0).inMs[0]).toBeCloseTo(6_000 / 0.97 - 6_000);
  // Nobody waits for a block that begins in more than a minute.
  expect(next(2_000)).toMatchObject({ inMs: [], againMs: expect.closeTo(63_896.9, 1) });
});

test('a block ends with its window, so a lost holder costs no more than that', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.integer({ min: 1, max: 10_000 }),
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
