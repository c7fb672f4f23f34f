/** The target: at most or at least a value, or a range. */
export type Bar =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly between: readonly [least: number, most: number] };

export type Unit = 'x' | 's' | 'ms' | 'bytes' | 'MB' | 'events' | 'count' | 'exponent' | '%';

/** When and where a group of rows was measured. */
export interface MeasuredApart {
  /** ISO 8601. */
  readonly at: string;
  readonly cpu: string;
  readonly node: string;
  /** Load of the machine before, if it is known. */
  readonly load?: number;
}

/** One measured line of the table. */
export interface Row {
  /** For `--only` and for programs, e.g. `latency/scripted`. */
  readonly name: string;
  readonly what: string;
  /** The figure that is compared with the target. */
  readonly value: number;
  readonly unit: Unit;
  readonly bar: Bar;
  /** The samples behind `value`, in the order measured; the spread is computed from them. */
  readonly samples: readonly number[];
  /** The absolute figures behind it, for the reader. */
  readonly detail: string;
  /** Only of a group that was measured apart from the others. */
  readonly apart?: MeasuredApart;
  /** The value of each run, in order; only of several runs, whose median run the row is of. */
  readonly runs?: readonly number[];
  /** Points for the plots of the page. */
  readonly series?: readonly Series[];
}

export const PLOTS = ['latency', 'bytes', 'throughput', 'recovery'] as const;
export type PlotName = (typeof PLOTS)[number];

/** A line of a plot. Lines of the same plot and side are drawn as one. */
export interface Series {
  readonly plot: PlotName;
  /** What was measured, such as `perdure` or `bare loop`. */
  readonly side: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** A line of recovery: after so many seconds, this share of the runs had gone on, in percent. */
export function recoverySeries(side: string, recoveredMs: readonly number[]): Series {
  const points = recoveredMs
    .toSorted((a, b) => a - b)
    .map((ms, at) => ({ x: ms / 1_000, y: (100 * (at + 1)) / recoveredMs.length }));
  return { plot: 'recovery', side, points: [{ x: 0, y: 0 }, ...points] };
}

/**
 * Returns the rows of several runs as one: each is that of the run with the median value (of an even
 * number of runs, the one that is further from its target), and has the values of all.
 */
export function medianRun(runs: readonly (readonly Row[])[]): readonly Row[] {
  const [first = [], ...others] = runs;
  if (others.length === 0) return first;
  return first.map((row) => {
    const all = runs.flatMap((rows) => rows.filter(({ name }) => name === row.name));
    const ordered = all.toSorted((a, b) => a.value - b.value);
    const middle = (ordered.length - 1) / 2;
    const at = 'atLeast' in row.bar ? Math.floor(middle) : Math.ceil(middle);
    return { ...(ordered[at] ?? row), runs: all.map(({ value }) => value) };
  });
}

export function isMet({ value, bar }: Pick<Row, 'value' | 'bar'>): boolean {
  if ('atMost' in bar) return value <= bar.atMost;
  if ('atLeast' in bar) return value >= bar.atLeast;
  const [least, most] = bar.between;
  return value >= least && value <= most;
}
