/** The spread of measured values: the extremes and the quartiles. */
export interface Spread {
  readonly least: number;
  readonly lowerQuartile: number;
  readonly median: number;
  readonly upperQuartile: number;
  readonly most: number;
}

/**
 * The value below which this share (0 to 1) of the values lies, interpolated. NaN if there are no
 * values.
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function spreadOf(values: readonly number[]): Spread {
  return {
    least: quantile(values, 0),
    lowerQuartile: quantile(values, 0.25),
    median: median(values),
    upperQuartile: quantile(values, 0.75),
    most: quantile(values, 1),
  };
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The slope of the best-fitting straight line, by least squares. NaN for fewer than two points. */
export function slope(points: readonly Point[]): number {
  const middleX = mean(points.map(({ x }) => x));
  const middleY = mean(points.map(({ y }) => y));
  const rise = sum(points.map(({ x, y }) => (x - middleX) * (y - middleY)));
  const run = sum(points.map(({ x }) => (x - middleX) ** 2));
  return rise / run;
}

/** The exponent e of the best-fitting power law y = c·xᵉ: 1 is linear growth. */
export function exponent(points: readonly Point[]): number {
  return slope(points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) })));
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
