import { expect, test } from 'vitest';
import { segmentFull } from '../../src/core/run/carry.js';
import { begun, config, SHORT } from '../support/scripts.js';

const MIB = 1024 * 1024;
const state = begun(config());
const full = (steps: number, facts = {}): boolean =>
  segmentFull({ ...state, total: { ...state.total, steps } }, { ...SHORT, ...facts }, 0);

test('a segment is full by default after 100 steps, or at 2 MiB of history', () => {
  expect(full(99)).toBe(false);
  expect(full(100)).toBe(true);
  expect(full(1, { historyBytes: 2 * MIB - 1 })).toBe(false);
  expect(full(1, { historyBytes: 2 * MIB })).toBe(true);
  expect(full(1, { historyEvents: 3_999 })).toBe(false);
  expect(full(1, { historyEvents: 4_000 })).toBe(true);
});
