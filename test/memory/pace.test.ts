import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createClock, createPace, type Pace } from '../../src/memory/clock.js';

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

describe('a timer in memory', () => {
  let pace: Pace;
  afterEach(() => pace.stop());

  test('that is set while code has run for long waits for its own time', () => {
    const clock = createClock(0);
    pace = createPace(clock);
    pace.begin();
    vi.advanceTimersByTime(30_000);
    const fire = vi.fn<() => void>();
    clock.set({ at: 30_000, kind: 'timeout' }, fire);
    vi.advanceTimersByTime(29_900);
    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(200);
    expect(fire).toHaveBeenCalledOnce();
    expect(clock.now()).toBe(30_000);
  });

  test('waits for what is left after the clock has moved', () => {
    const clock = createClock(0);
    pace = createPace(clock);
    const fire = vi.fn<() => void>();
    clock.set({ at: 1_000, kind: 'timeout' }, fire);
    clock.set({ at: 900, kind: 'retry' }, () => undefined);
    clock.advance();
    pace.begin();
    vi.advanceTimersByTime(80);
    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(40);
    expect(fire).toHaveBeenCalledOnce();
  });

  test('does not wait longer because another one has fired', () => {
    const clock = createClock(0);
    pace = createPace(clock);
    pace.begin();
    const fire = vi.fn<() => void>();
    clock.set({ at: 1_000, kind: 'timeout' }, fire);
    vi.advanceTimersByTime(800);
    clock.set({ at: 1, kind: 'timeout' }, () => undefined);
    vi.advanceTimersByTime(220);
    expect(fire).toHaveBeenCalledOnce();
  });
});
