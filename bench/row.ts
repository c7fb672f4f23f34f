/** What is to be reached: at most or at least so much, or something between the two. */
export type Bar =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly between: readonly [least: number, most: number] };

/** One measured line of the table. */
export interface Row {
  /** For `--only` and for machines, e.g. `latency/scripted`. */
  readonly name: string;
  readonly what: string;
  /** The figure that is held against the bar. */
  readonly value: number;
  readonly unit: 'x' | 's' | 'ms' | 'bytes' | 'MB' | 'events' | 'count' | 'exponent' | '%';
  readonly bar: Bar;
  /** What `value` was made of, in the order measured; the spread is taken from them. */
  readonly samples: readonly number[];
  /** The absolute figures behind it, for people. */
  readonly detail: string;
}

export function isMet({ value, bar }: Row): boolean {
  if ('atMost' in bar) return value <= bar.atMost;
  if ('atLeast' in bar) return value >= bar.atLeast;
  const [least, most] = bar.between;
  return value >= least && value <= most;
}
