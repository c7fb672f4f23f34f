import { describe, expect, test } from 'vitest';
import { isMet, type Bar } from '../bench/row.js';
import { exponent, median, quantile, slope, spreadOf, type Point } from '../bench/statistics.js';

function power(e: number): readonly Point[] {
  return [25, 50, 100, 200].map((x) => ({ x, y: 5 * x ** e }));
}

describe('statistics of the bench', () => {
  test('the median of an odd count is the middle value, that of an even count the mean of the two', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([10, 1, 3, 2])).toBe(2.5);
    expect(median([7])).toBe(7);
    expect(median([])).toBeNaN();
  });

  test('numbers are sorted numerically, and the input list is unchanged', () => {
    const values = [100, 20, 3];
    expect(median(values)).toBe(20);
    expect(values).toEqual([100, 20, 3]);
  });

  test('a quantile between two values is interpolated', () => {
    expect(quantile([0, 10, 20, 30], 0.25)).toBe(7.5);
    expect(spreadOf([4, 1, 3, 2, 5])).toEqual({
      least: 1,
      lowerQuartile: 2,
      median: 3,
      upperQuartile: 4,
      most: 5,
    });
  });

  test('the slope is that of the line, whatever its intercept', () => {
    const line = [1, 4, 9].map((x) => ({ x, y: 3 * x - 7 }));
    expect(slope(line)).toBeCloseTo(3, 10);
  });

  test('the exponent distinguishes linear from quadratic growth', () => {
    expect(exponent(power(1))).toBeCloseTo(1, 10);
    expect(exponent(power(2))).toBeCloseTo(2, 10);
  });
});

test.each<{ bar: Bar; met: readonly number[]; missed: readonly number[] }>([
  { bar: { atMost: 2 }, met: [-1, 2], missed: [2.1, Number.NaN] },
  { bar: { atLeast: 2 }, met: [2, 3], missed: [1.9, Number.NaN] },
  { bar: { between: [0.9, 1.1] }, met: [0.9, 1, 1.1], missed: [0.89, 1.11, Number.NaN] },
])('a target of $bar is met by $met and missed by $missed', ({ bar, met, missed }) => {
  const row = { name: '', what: '', unit: 'x', bar, samples: [], detail: '' } as const;
  expect(met.filter((value) => !isMet({ ...row, value }))).toEqual([]);
  expect(missed.filter((value) => isMet({ ...row, value }))).toEqual([]);
});
