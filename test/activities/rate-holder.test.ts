import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type TakeBlock, RateHolder } from '../../src/activities/model/paced-models.js';
import { type Pace, type Rate, UNUSED, takeBlock } from '../../src/core/rules/rate.js';
import { isModelError } from '../../src/models/model.js';
import { NONE_REFUSED, refusedBy } from '../support/allowances.js';

const MINUTE = { requests: 60, perMs: 60_000 };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const open = (): AbortSignal => new AbortController().signal;
const wait = async (ms: number): Promise<void> => await new Promise((done) => setTimeout(done, ms));

/** An allowance behind a network whose delays repeat; its clock is not that of the workers. */
function allowance(delays: readonly number[] = [8]) {
  let pace: Pace = UNUSED;
  let asked = 0;
  const delay = async (): Promise<void> => await wait(delays[asked % delays.length] ?? 0);
  const take: TakeBlock = async (ask) => {
    asked += 1;
    await delay();
    const taken = takeBlock(pace, ask, Date.now() + 3_600_000);
    ({ pace } = taken);
    await delay();
    return taken.block;
  };
  return { take, asked: () => asked };
}

/** Runs that call the model again and again. Returns the times of all calls. */
async function callsOf(
  holder: RateHolder,
  take: TakeBlock,
  { runs, untilMs, pauseMs = 50 }: { runs: number; untilMs: number; pauseMs?: number },
): Promise<number[]> {
  const times: number[] = [];
  const one = async (): Promise<void> => {
    for (;;) {
      await holder.enter({ tokens: 0, since: Date.now(), signal: open() }, take);
      if (performance.now() >= untilMs) return;
      times.push(performance.now());
      await wait(pauseMs);
    }
  };
  const all = Promise.all(Array.from({ length: runs }, one));
  await vi.advanceTimersByTimeAsync(untilMs + 120_000);
  await all;
  return times;
}

async function refusal(entered: Promise<void>): Promise<unknown> {
  return await entered.then(
    () => 'begun',
    (error: unknown) => (isModelError(error) ? error.details : error),
  );
}

test.each([1, 2, 5])(
  'of the calls of %i workers none is refused, and at least 95 % of the allowance is used',
  async (workers) => {
    const { take, asked } = allowance([8, 8, 90, 8, 250]);
    const untilMs = performance.now() + 600_000;
    const runs = 40 / workers;
    const times = await Promise.all(
      Array.from({ length: workers }, () =>
        callsOf(new RateHolder('m', MINUTE), take, { runs, untilMs }),
      ),
    );
    const all = times.flat();
    expect(refusedBy(MINUTE, all)).toEqual(NONE_REFUSED);
    expect(all.length).toBeGreaterThanOrEqual(570);
    expect(asked()).toBeLessThan(all.length / 2);
  },
);

test('calls below the allowance share requests to the server', async () => {
  const rate: Rate = { requests: 3_000, perMs: 60_000 };
  const { take, asked } = allowance();
  const untilMs = performance.now() + 60_000;
  const times = await callsOf(new RateHolder('m', rate), take, { runs: 4, untilMs, pauseMs: 200 });
  expect(times.length).toBeGreaterThan(1_000);
  expect(asked()).toBeLessThan(times.length / 8);
});

test('a worker that dies costs the others no more than its block', async () => {
  const { take } = allowance();
  const untilMs = performance.now() + 300_000;
  let lost = 0;
  const die = async (): Promise<void> => {
    lost = (await take({ rate: MINUTE, uses: 100, tokens: 0, owed: 0 })).inMs.length;
  };
  setTimeout(() => void die(), 150_000);
  const times = await callsOf(new RateHolder('m', MINUTE), take, { runs: 40, untilMs });
  expect(lost).toBe(3);
  expect(times.length).toBeGreaterThanOrEqual(0.97 * 300 - 1 - lost);
});

test('the oldest call is next, and a canceled one leaves its turn to another', async () => {
  const { take } = allowance();
  const holder = new RateHolder('m', MINUTE);
  const begun: string[] = [];
  const enter = async (name: string, since: number, on = open()): Promise<void> => {
    await holder.enter({ tokens: 0, since, signal: on }, take);
    begun.push(name);
  };
  const leaving = new AbortController();
  const calls = [enter('first', 3), enter('young', 4), enter('old', 1)];
  const left = refusal(enter('canceled', 2, leaving.signal));
  await vi.advanceTimersByTimeAsync(100);
  leaving.abort(new Error('canceled'));
  await vi.advanceTimersByTimeAsync(10_000);
  await Promise.all(calls);
  expect(await left).toMatchObject({ message: 'canceled' });
  expect(begun).toEqual(['old', 'first', 'young']);
  await expect(enter('late', 5, AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
});

test('a call that would wait for more than two minutes is refused at once, with the wait', async () => {
  const { take } = allowance();
  const holder = new RateHolder('m', MINUTE);
  const call = async (): Promise<unknown> =>
    await refusal(holder.enter({ tokens: 0, since: Date.now(), signal: open() }, take));
  const calls = Array.from({ length: 118 }, call);
  expect(await call()).toMatchObject({ kind: 'retry', type: 'rate', retryAfterMs: 120_619 });
  await vi.advanceTimersByTimeAsync(130_000);
  const ends = await Promise.all(calls);
  expect(ends.filter((end) => end !== 'begun').length).toBeLessThan(3);
});

test('an allowance that does not answer is asked again, and refuses calls after two minutes', async () => {
  let asked = 0;
  const take: TakeBlock = async () => {
    asked += 1;
    throw new Error('no server');
  };
  const holder = new RateHolder('m', MINUTE);
  const call = refusal(holder.enter({ tokens: 0, since: 0, signal: open() }, take));
  await vi.advanceTimersByTimeAsync(119_000);
  expect(asked).toBeGreaterThan(20);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await call).toMatchObject({ kind: 'retry', type: 'rate' });
  // Later, it answers.
  const next = refusal(holder.enter({ tokens: 0, since: 0, signal: open() }, allowance().take));
  await vi.advanceTimersByTimeAsync(6_000);
  expect(await next).toBe('begun');
});

test('tokens are counted as they were taken, not as they were estimated', async () => {
  const rate: Rate = { tokens: 6_000, perMs: 60_000 };
  const { take } = allowance();
  const holder = new RateHolder('m', rate);
  let taken = 0;
  const one = async (): Promise<void> => {
    for (;;) {
      await holder.enter({ tokens: 100, since: Date.now(), signal: open() }, take);
      if (performance.now() > 600_000) return;
      taken += 300;
      await wait(500);
      holder.settle({ taken: 300, estimated: 100 });
    }
  };
  const runs = Promise.all([one(), one(), one(), one()]);
  await vi.advanceTimersByTimeAsync(900_000);
  await runs;
  expect(taken / 60_000).toBeGreaterThan(0.95);
  // The first ones begin before the estimates are known to be wrong.
  expect(taken / 60_000).toBeLessThan(1.02);
});
