import type { RunItem } from './stream-cursor.js';

/** The newest items of a run, for readers that come a little late or read a little slowly. */
export interface StreamRing {
  /** Numbers of the oldest that is kept, and of the next to come. */
  readonly start: number;
  readonly end: number;
  push(item: RunItem): void;
  at(number: number): RunItem | undefined;
  /** Where to go on behind a durable event, null: at the run's beginning; null where that is not known here. */
  behind(offset: string | null): number | null;
}

export interface RingSize {
  readonly items: number;
  /** UTF-16 units of JSON, about. */
  readonly units: number;
}

export const RING_SIZE: RingSize = { items: 2_000, units: 4 * 1024 * 1024 };

export function createStreamRing(size: RingSize = RING_SIZE): StreamRing {
  const items: { readonly item: RunItem; readonly units: number }[] = [];
  const places = new Map<string, number>();
  let start = 0;
  let units = 0;
  /** Of the durable event that was let go last; undefined while there is none. */
  let behindStart: string | null | undefined;

  const drop = (): void => {
    const oldest = items.shift();
    if (oldest === undefined) return;
    start += 1;
    units -= oldest.units;
    if (oldest.item.type !== 'durable') return;
    behindStart = oldest.item.step.offset;
    places.delete(behindStart);
  };

  return {
    get start() {
      return start;
    },
    get end() {
      return start + items.length;
    },
    push(item) {
      if (item.type === 'durable') {
        // A run that is followed from its very beginning can be read from there.
        if (places.size === 0 && behindStart === undefined && item.step.type === 'run-started') {
          behindStart = null;
        }
        places.set(item.step.offset, start + items.length);
      }
      const weight = unitsOf(item);
      items.push({ item, units: weight });
      units += weight;
      while (items.length > size.items || (units > size.units && items.length > 1)) drop();
    },
    at: (number) => items[number - start]?.item,
    behind(offset) {
      const place = offset === null ? undefined : places.get(offset);
      if (place !== undefined) return place + 1;
      return behindStart === offset ? start : null;
    },
  };
}

/** What is durable may be large, and comes seldom. */
function unitsOf(item: RunItem): number {
  switch (item.type) {
    case 'durable':
      return JSON.stringify(item.step).length;
    case 'attempt':
      return 0;
    case 'piece':
      return item.piece.text.length;
  }
}
