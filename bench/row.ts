/** What is to be reached: at most or at least so much. */
export type Bar = { readonly atMost: number } | { readonly atLeast: number };

/** One measured line of the table. */
export interface Row {
  /** For `--only` and for machines, e.g. `latency/scripted`. */
  readonly name: string;
  readonly what: string;
  /** The figure that is held against the bar. */
  readonly value: number;
  readonly unit: 'x' | 's' | 'ms' | 'bytes' | 'events' | 'count' | 'exponent';
  readonly bar: Bar;
  /** What `value` was made of, in the order measured; the spread is taken from them. */
  readonly samples: readonly number[];
  /** The absolute figures behind it, for people. */
  readonly detail: string;
}

export function isMet({ value, bar }: Row): boolean {
  return 'atMost' in bar ? value <= bar.atMost : value >= bar.atLeast;
}
