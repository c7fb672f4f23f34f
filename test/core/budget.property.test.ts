import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Books,
  DAY_MS,
  type LeaseAsk,
  areBooks,
  dayOf,
  openBooks,
  readBooks,
  settleLease,
  takeLease,
} from '../../src/core/rules/budget.js';

const LIMIT = 100;
const NOON = 20_000 * DAY_MS + DAY_MS / 2;

function askOf(holder: string, ask: Partial<LeaseAsk> = {}): LeaseAsk {
  const total = ask.total ?? 0;
  const ceiling = total + (ask.reserved ?? 0) + 10;
  const rest = { holder, limit: LIMIT, total, settled: 0, reserved: 0, ceiling, need: 1 };
  return { ...rest, isOver: false, ...ask };
}

/** Gives the same again and again, until the budget is used up. */
function takeAll(books: Books, ask: LeaseAsk, now = NOON) {
  const taken = takeLease(books, ask, now);
  return { ...taken, left: taken.lease.ceiling - ask.total - ask.reserved };
}

interface Step {
  readonly holder: number;
  readonly need: number;
  /** What the call costs, as a share of what was reserved. */
  readonly cost: number;
  readonly isLost: boolean;
  readonly isAnswered: boolean;
}

/** Sums of these are exact. */
const sixtyFourths = (max: number) =>
  fc.integer({ min: 1, max: 64 * max }).map((count) => count / 64);
const step = fc.record<Step>({
  holder: fc.integer({ min: 0, max: 3 }),
  need: sixtyFourths(5),
  cost: sixtyFourths(1),
  isLost: fc.boolean(),
  isAnswered: fc.boolean(),
});

test('whatever holders do, all of them spend at most the budget and what one call may cost', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200 }), (steps) => {
      const small = LIMIT / 5;
      let books = openBooks(NOON);
      let spent = 0;
      let dearest = 0;
      let count = 4;
      const totals = [0, 0, 0, 0];
      const settled = [0, 0, 0, 0];
      const names = ['0', '1', '2', '3'];
      for (const { holder, need, cost, isLost, isAnswered } of steps) {
        dearest = Math.max(dearest, need);
        const total = totals[holder] ?? 0;
        const known = settled[holder] ?? 0;
        const ask = askOf(names[holder] ?? '', {
          limit: small,
          total,
          settled: known,
          need,
          ceiling: total + Math.max(1, need),
        });
        const taken = takeLease(books, ask, NOON);
        ({ books } = taken);
        expect(areBooks(JSON.parse(JSON.stringify(books)))).toBe(true);
        // To ask again changes nothing.
        const again = takeLease(books, ask, NOON);
        expect(again.lease).toEqual(taken.lease);
        if (!isAnswered) continue;
        settled[holder] = total;
        const { ceiling, isLast } = taken.lease;
        if (need > ceiling - total && !isLast) continue;
        spent += need * cost;
        totals[holder] = total + need * cost;
        if (isLost) {
          // A worker begins in its place, and what the dead one had counts as spent.
          [totals[holder], settled[holder], names[holder]] = [0, 0, `${count++}`];
        }
      }
      expect(spent).toBeLessThanOrEqual(small + dearest);
      expect(readBooks(books, NOON).spent).toBeLessThanOrEqual(spent);
    }),
    { numRuns: 50 },
  );
});

test('what holders report is counted once, however often and in whatever order it arrives', () => {
  let { books } = takeAll(openBooks(NOON), askOf('a'));
  const said = { holder: 'a', total: 3, settled: 0, reserved: 0 };
  books = settleLease(books, said, NOON);
  books = settleLease(books, said, NOON);
  books = settleLease(books, { ...said, total: 2 }, NOON);
  expect(readBooks(books, NOON)).toMatchObject({ spent: 3, held: 0 });
  books = takeLease(books, askOf('a', { total: 4, settled: 3 }), NOON).books;
  expect(readBooks(books, NOON)).toMatchObject({ spent: 4, held: 10 });
  books = settleLease(
    books,
    { holder: 'a', total: 5, settled: 4, reserved: 0, closing: true },
    NOON,
  );
  expect(books).toMatchObject({ spent: 5, accounts: {} });
});

test('the last of a budget goes to one call, and the next one waits for its end', () => {
  const first = takeAll(openBooks(NOON), askOf('a', { ceiling: 99 }));
  expect(first.left).toBe(99);
  const b = askOf('b', { need: 5 });
  const second = takeAll(first.books, b);
  expect(second).toMatchObject({ left: 1, lease: { isLast: true, held: 99 } });
  // Another call of the same worker, and one of another, while it is in progress.
  const during = { ...b, reserved: 5, isOver: true };
  const third = takeAll(second.books, during);
  expect(third.lease.isLast).toBe(false);
  const other = takeAll(third.books, askOf('a', { total: 98, ceiling: 103, need: 5 }));
  expect(other).toMatchObject({ left: 1, lease: { isLast: false } });
  const over = settleLease(other.books, { holder: 'b', total: 4, settled: 0, reserved: 0 }, NOON);
  const after = takeAll(over, askOf('a', { total: 98, settled: 98, ceiling: 103, need: 5 }));
  expect(after).toMatchObject({ lease: { spent: 102, held: 0, isLast: true }, left: 1 });
});

test('a lost lease counts as spent until its day ends, and a raised limit helps at once', () => {
  const lost = takeAll(openBooks(NOON), askOf('lost', { ceiling: 100 }));
  const asked = takeAll(lost.books, askOf('b'));
  expect(asked).toMatchObject({ left: 0, lease: { isLast: false, held: 100, spent: 0 } });
  expect(takeAll(asked.books, askOf('b', { limit: 150 })).left).toBe(10);
  const midnight = (dayOf(NOON) + 1) * DAY_MS;
  expect(takeAll(asked.books, askOf('b'), midnight - 1)).toMatchObject({
    left: 0,
    lease: { endsInMs: 1 },
  });
  const next = takeAll(asked.books, askOf('b'), midnight);
  expect(next).toMatchObject({ left: 10, lease: { day: 20_001, held: 0, spent: 0 } });
});

test('what a call has cost after midnight counts on the new day, also if the workflow began anew', () => {
  const before = takeAll(openBooks(NOON), askOf('a', { reserved: 4 }));
  const midnight = (dayOf(NOON) + 1) * DAY_MS;
  const ask = askOf('a', { total: 4, settled: 0 });
  for (const books of [before.books, openBooks(midnight)]) {
    expect(takeLease(books, ask, midnight).lease).toMatchObject({ spent: 4, endsInMs: DAY_MS });
  }
  // A holder that was quiet for a day is forgotten, and knows itself what was recorded.
  let { books } = takeLease(before.books, ask, midnight);
  books = takeLease(books, askOf('b'), midnight + DAY_MS).books;
  books = takeLease(books, askOf('b'), midnight + 2 * DAY_MS).books;
  expect(Object.keys(books.accounts)).toEqual(['b']);
  const again = takeLease(books, { ...ask, total: 5, settled: 4 }, midnight + 2 * DAY_MS);
  expect(again.lease.spent).toBe(1);
});
