import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CliContext } from '../../src/cli/context.js';
import { watchElsewhere } from '../../src/cli/hosting/takeover.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A worker elsewhere that a process watches. `answers`: whether it answers although the list lacks it. */
function watched(given: { readonly answers?: boolean; readonly lack?: string } = {}) {
  const notes: string[] = [];
  const state = { isPolled: true, isReachable: true, starts: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the part that the watch uses
  const context = { note: (text: string) => notes.push(text) } as unknown as CliContext;
  const end = watchElsewhere(context, {
    async isPolled() {
      if (!state.isReachable) throw new Error('the server does not answer');
      return state.isPolled;
    },
    lack: async () => given.lack ?? null,
    async start() {
      state.starts += 1;
      const isStarted = given.answers !== true;
      // It polls, too.
      state.isPolled = isStarted;
      return isStarted;
    },
  });
  return { notes, state, end };
}

const seconds = async (count: number) => await vi.advanceTimersByTimeAsync(count * 1_000);

test('a worker elsewhere that restarts stays the only one', async () => {
  const { state, notes } = watched();
  for (let restart = 0; restart < 5; restart += 1) {
    state.isPolled = false;
    await seconds(12);
    state.isPolled = true;
    await seconds(6);
  }
  expect(state.starts).toBe(0);
  expect(notes).toEqual([]);
});

test('a worker elsewhere that has ended is replaced, and that is said', async () => {
  const { state, notes, end } = watched();
  state.isPolled = false;
  await seconds(21);
  expect(state.starts).toBe(1);
  end();
  await seconds(600);
  expect(state.starts).toBe(1);
  expect(notes).toEqual(['The worker elsewhere has ended. A worker runs in this process.']);
});

test('while the server does not answer, nothing is known about the worker', async () => {
  const { state, notes } = watched();
  state.isReachable = false;
  await seconds(120);
  expect(state.starts).toBe(0);
  expect(notes).toEqual([]);
});

test('no worker starts that lacks agents of open runs, and that is said once', async () => {
  const { state, notes } = watched({ lack: 'The queue has open runs of clerk.' });
  state.isPolled = false;
  await seconds(120);
  expect(state.starts).toBe(0);
  expect(notes).toEqual([
    'The worker elsewhere has ended, and none starts in this process. The queue has open runs of clerk.',
  ]);
});

test('a worker that answers although no poll of it is listed is asked ever more rarely', async () => {
  const { state } = watched({ answers: true });
  state.isPolled = false;
  await seconds(3_600);
  expect(state.starts).toBeGreaterThan(3);
  expect(state.starts).toBeLessThan(10);
});
