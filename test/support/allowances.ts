/** An allowance of a provider: this many requests in a time, by its own way of counting. */
export interface Allowance {
  readonly requests: number;
  readonly perMs: number;
}

/** Whether a provider refuses a request at this time, in ms. Times never decrease. */
type Refuses = (at: number) => boolean;

/** The ways in which providers count. Refused requests do not count. */
export const COUNTS: Readonly<Record<string, (allowance: Allowance) => Refuses>> = {
  'in a window that slides'({ requests, perMs }) {
    const kept: number[] = [];
    return (at) => {
      while (kept[0] !== undefined && kept[0] <= at - perMs) kept.shift();
      if (kept.length >= requests) return true;
      kept.push(at);
      return false;
    };
  },
  'in fixed windows'({ requests, perMs }) {
    const counts = new Map<number, number>();
    return (at) => {
      const window = Math.floor((at + 0.3 * perMs) / perMs);
      const count = (counts.get(window) ?? 0) + 1;
      counts.set(window, count);
      return count > requests;
    };
  },
  // A bucket that is filled all the time, with room for two.
  'by the second'({ requests, perMs }) {
    let left = 2;
    let before = 0;
    return (at) => {
      left = Math.min(2, left + ((at - before) * requests) / perMs);
      before = at;
      if (left < 1) return true;
      left -= 1;
      return false;
    };
  },
};

/** Returns how many of the requests each kind of provider refuses. */
export function refusedBy(
  allowance: Allowance,
  times: readonly number[],
): Readonly<Record<string, number>> {
  const sorted = times.toSorted((one, other) => one - other);
  return Object.fromEntries(
    Object.entries(COUNTS).map(([kind, open]) => [kind, sorted.filter(open(allowance)).length]),
  );
}

/** What `refusedBy` returns if no provider refuses anything. */
export const NONE_REFUSED = Object.fromEntries(Object.keys(COUNTS).map((kind) => [kind, 0]));
