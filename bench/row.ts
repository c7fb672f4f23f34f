/** The target: at most or at least a value, or a range. */
export type Bar =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly between: readonly [least: number, most: number] };

/** One measured line of the table. */
export interface Row {
  /** For `--only` and for programs, e.g. `latency/scripted`. */
  readonly name: string;
  readonly what: string;
  /** The figure that is compared with the target. */
  readonly value: number;
  readonly unit: 'x' | 's' | 'ms' | 'bytes' | 'MB' | 'events' | 'count' | 'exponent' | '%';
  readonly bar: Bar;
  /** The samples behind `value`, in the order measured; the spread is computed from them. */
  readonly samples: readonly number[];
  /** The absolute figures behind it, for the reader. */
  readonly detail: string;
}

export function isMet({ value, bar }: Row): boolean {
  if ('atMost' in bar) return value <= bar.atMost;
  if ('atLeast' in bar) return value >= bar.atLeast;
  const [least, most] = bar.between;
  return value >= least && value <= most;
}
