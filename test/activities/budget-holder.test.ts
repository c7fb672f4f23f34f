import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  BudgetHolder,
  type BudgetOffice,
  type Settle,
} from '../../src/activities/model/budget-holder.js';
import {
  type Books,
  DAY_MS,
  type SharedBudget,
  openBooks,
  readBooks,
  settleLease,
  takeLease,
} from '../../src/core/rules/budget.js';
import { isModelError } from '../../src/models/model.js';

const ACME: SharedBudget = { of: 'tenant', name: 'acme', unit: 'costUsd', limit: 5 };
const NOON = Date.UTC(2026, 10, 26, 12);

beforeEach(() => {
  vi.useFakeTimers({ now: NOON });
});
afterEach(() => {
  vi.useRealTimers();
});

const open = (): AbortSignal => new AbortController().signal;
const wait = async (ms: number): Promise<void> => await new Promise((done) => setTimeout(done, ms));

/**
 * The workflow behind a network. A request that `fails` is recorded, and its answer is lost. `arrivesMs`: when
 * one for a lease arrives.
 */
function openOffice({
  fails = () => false,
  arrivesMs = 5,
}: { readonly fails?: (asked: number) => boolean; readonly arrivesMs?: number } = {}) {
  let books: Books = openBooks(Date.now());
  let asked = 0;
  const office: BudgetOffice = {
    async take(ask) {
      asked += 1;
      const isLost = fails(asked);
      await wait(arrivesMs);
      const taken = takeLease(books, ask, Date.now());
      ({ books } = taken);
      await wait(5);
      if (isLost) throw new Error('the server is away');
      return taken.lease;
    },
    async settle(said) {
      await wait(5);
      books = settleLease(books, said, Date.now());
      return true;
    },
  };
  return { office, asked: () => asked, read: () => readBooks(books, Date.now()) };
}

async function enter(
  holder: BudgetHolder,
  { office }: { readonly office: BudgetOffice },
  need: number,
): Promise<Settle | Error> {
  const since = Date.now();
  return await holder.enter({ need, since, signal: open() }, office).catch((error: unknown) => {
    if (isModelError(error)) return error;
    throw error;
  });
}

/** Makes calls, each with this estimate and this cost, until one is refused. Returns their number. */
async function spendAll(
  holder: BudgetHolder,
  budget: ReturnType<typeof openOffice>,
  { need, cost, ms = 100 }: { readonly need: number; readonly cost: number; readonly ms?: number },
): Promise<number> {
  for (let calls = 0; ; calls += 1) {
    const settle = await enter(holder, budget, need);
    if (typeof settle !== 'function') return calls;
    await wait(ms);
    settle(cost);
  }
}

async function played<T>(work: Promise<T>, ms = 600_000): Promise<T> {
  await vi.advanceTimersByTimeAsync(ms);
  return await work;
}

test('few calls ask the server, and nothing is lost or counted twice', async () => {
  const budget = openOffice({ fails: (asked) => asked % 3 === 0 });
  const holder = new BudgetHolder(ACME);
  expect(await played(spendAll(holder, budget, { need: 0.02, cost: 0.01 }))).toBe(500);
  expect(budget.read().spent).toBeCloseTo(5);
  expect(budget.asked()).toBeLessThan(200);
});

test('five calls on two workers at 99 %: one begins, and the overrun is what it costs', async () => {
  const budget = openOffice();
  const workers = [new BudgetHolder(ACME), new BudgetHolder(ACME)];
  const [first, second] = workers;
  if (first === undefined || second === undefined) throw new Error('no workers');
  const before = await played(enter(first, budget, 4.95), 100);
  if (before instanceof Error) throw before;
  before(4.95);
  const calls = [first, second, first, second, first].map(async (worker) => {
    const settle = await enter(worker, budget, 0.2);
    if (settle instanceof Error) return settle.message;
    await wait(1_000);
    settle(0.15);
    return 'spent';
  });
  const ends = await played(Promise.all(calls));
  expect(ends.filter((end) => end === 'spent')).toHaveLength(1);
  expect(budget.read()).toMatchObject({ spent: expect.closeTo(5.1) as number, held: 0 });
  expect(ends.find((end) => end !== 'spent')).toBe(
    'the budget of tenant "acme" for 2026-11-26 has no room for this call: 5.10 of 5.00 USD spent; the run waits until ' +
      '2026-11-27T00:00Z, or raise `costUsd` of the budget in the config of the workers',
  );
});

test('a used-up budget refuses at once without asking, until the next day', async () => {
  const budget = openOffice();
  const holder = new BudgetHolder(ACME);
  await played(spendAll(holder, budget, { need: 1, cost: 1 }), 10_000);
  const asked = budget.asked();
  for (let probe = 0; probe < 50; probe += 1) {
    expect(await enter(holder, budget, 1)).toMatchObject({
      details: { type: 'shared_budget', retryAfterMs: expect.any(Number) as number },
    });
    await vi.advanceTimersByTimeAsync(60_000);
  }
  expect(budget.asked()).toBe(asked);
  await vi.advanceTimersByTimeAsync(DAY_MS / 2);
  expect(await played(enter(holder, budget, 1), 100)).toBeTypeOf('function');
});

test('the lease of a dead worker counts until the day ends, that of an idle one for ten seconds', async () => {
  const budget = openOffice();
  const [dead, idle, live] = [
    new BudgetHolder(ACME),
    new BudgetHolder(ACME),
    new BudgetHolder(ACME),
  ];
  // It never settles.
  await played(enter(dead, budget, 2), 100);
  const settle = await played(enter(idle, budget, 2), 100);
  if (settle instanceof Error) throw settle;
  settle(0.5);
  expect(budget.read()).toMatchObject({ held: 4, spent: 0 });
  await vi.advanceTimersByTimeAsync(11_000);
  expect(budget.read()).toMatchObject({ held: 2, spent: 0.5 });
  expect(await played(spendAll(live, budget, { need: 0.5, cost: 0.5 }))).toBe(5);
  const refused = await played(enter(live, budget, 0.5));
  expect(String(refused)).toContain(
    '3.00 of 5.00 USD spent, and other workers hold 2.00 (one that died, until the day ends);',
  );
});

test('after a burst, a worker that stays busy keeps little of what its calls did not need', async () => {
  const budget = openOffice();
  const [busy, other] = [new BudgetHolder(ACME), new BudgetHolder(ACME)];
  const long = await played(enter(busy, budget, 0.1), 100);
  const burst = Array.from({ length: 49 }, async () => {
    const settle = await enter(busy, budget, 0.1);
    await wait(1_000);
    if (typeof settle === 'function') settle(0.01);
  });
  await vi.advanceTimersByTimeAsync(500);
  expect(budget.read().held).toBeCloseTo(5);
  await played(Promise.all(burst), 2_000);
  expect(budget.read()).toMatchObject({ spent: expect.closeTo(0.49) as number });
  expect(budget.read().held).toBeLessThan(0.6);
  expect(await played(spendAll(other, budget, { need: 0.1, cost: 0.1 }))).toBeGreaterThan(38);
  if (typeof long === 'function') long(0);
});

test('calls that wait for each other begin as money comes back, and a canceled one leaves', async () => {
  const budget = openOffice();
  const holder = new BudgetHolder({ ...ACME, limit: 1 });
  const controller = new AbortController();
  const first = await played(enter(holder, budget, 0.9), 100);
  if (first instanceof Error) throw first;
  // One call may cost more than what is left.
  const last = await played(enter(holder, budget, 0.3), 100);
  if (last instanceof Error) throw last;
  const { signal } = controller;
  const canceled = holder.enter({ need: 0.9, since: 0, signal }, budget.office);
  const second = enter(holder, budget, 0.3);
  await vi.advanceTimersByTimeAsync(2_000);
  controller.abort(new Error('over'));
  await expect(canceled).rejects.toThrow('over');
  first(0.1);
  last(0.2);
  expect(await played(second, 20_000)).toBeTypeOf('function');
});

test('a server that does not answer refuses calls after two minutes, and says why', async () => {
  const budget = openOffice({ fails: () => true });
  const refused = await played(enter(new BudgetHolder(ACME), budget, 1));
  expect(String(refused)).toContain(
    'the budget of tenant "acme" does not answer: the server is away',
  );
});

test('a worker that shuts down returns its lease', async () => {
  const budget = openOffice();
  const holder = new BudgetHolder(ACME);
  const settle = await played(enter(holder, budget, 2), 100);
  if (settle instanceof Error) throw settle;
  settle(1);
  await played(holder.close(), 100);
  expect(budget.read()).toMatchObject({ spent: 1, held: 0 });
});

test('a worker that shuts down while it asks for a lease returns that one too', async () => {
  const budget = openOffice({ arrivesMs: 50 });
  const holder = new BudgetHolder(ACME);
  const controller = new AbortController();
  const { signal } = controller;
  const entering = holder.enter({ need: 2, since: Date.now(), signal }, budget.office);
  // The worker cancels its calls, and then closes what they have used.
  controller.abort(new Error('over'));
  await expect(entering).rejects.toThrow('over');
  await played(holder.close(), 1_000);
  expect([budget.asked(), budget.read().held]).toEqual([1, 0]);
});

test('a worker that dies holds what its calls in progress had reserved, and the lease of no other call', async () => {
  const budget = openOffice();
  const dead = new BudgetHolder(ACME);
  // They never settle.
  const calls = Array.from({ length: 5 }, async () => await enter(dead, budget, 0.2));
  await played(Promise.all(calls), 1_000);
  expect(budget.read().held).toBeCloseTo(1);
});

test('the last of a budget is used although the call before ends while the worker asks', async () => {
  const budget = openOffice({ arrivesMs: 50 });
  const holder = new BudgetHolder({ ...ACME, limit: 9 });
  const first = await played(enter(holder, budget, 5), 1_000);
  const over = await played(enter(holder, budget, 5), 1_000);
  if (first instanceof Error || over instanceof Error) throw new Error('no room');
  const third = enter(holder, budget, 5);
  await vi.advanceTimersByTimeAsync(10);
  first(3);
  over(3);
  expect(await played(third)).toBeTypeOf('function');
});
