import type { StreamEntry } from './stream-entries.js';

/** The newest entries of a run's stream, for readers that join late or read slowly. */
export interface StreamRing {
  /** Number of the oldest entry that is kept. */
  readonly start: number;
  /** Number of the next entry to come. */
  readonly end: number;
  push(entry: StreamEntry): void;
  at(number: number): StreamEntry | undefined;
  /**
   * Returns the number of the entry after a durable event (`offset` null: the first entry of the
   * run); null if the ring does not reach back that far.
   */
  after(offset: string | null): number | null;
}

export interface RingSize {
  readonly entries: number;
  /** UTF-16 units of JSON, approximately. */
  readonly units: number;
}

export const RING_SIZE: RingSize = { entries: 2_000, units: 4 * 1024 * 1024 };

export function createStreamRing(size: RingSize = RING_SIZE): StreamRing {
  const kept: { readonly entry: StreamEntry; readonly units: number }[] = [];
  const numbers = new Map<string, number>();
  let start = 0;
  let units = 0;
  /**
   * Offset of the durable event dropped last, null for the run's beginning; undefined: none yet.
   */
  let beforeStart: string | null | undefined;

  const dropOldest = (): void => {
    const oldest = kept.shift();
    if (oldest === undefined) return;
    start += 1;
    units -= oldest.units;
    if (oldest.entry.type !== 'durable') return;
    beforeStart = oldest.entry.step.offset;
    numbers.delete(beforeStart);
  };

  return {
    get start() {
      return start;
    },
    get end() {
      return start + kept.length;
    },
    push(entry) {
      if (entry.type === 'durable') {
        // A run that is followed from its first event can be read from the beginning.
        const isFirst = numbers.size === 0 && beforeStart === undefined;
        if (isFirst && entry.step.type === 'run-started') beforeStart = null;
        numbers.set(entry.step.offset, start + kept.length);
      }
      const added = unitsOf(entry);
      kept.push({ entry, units: added });
      units += added;
      while (kept.length > size.entries || (units > size.units && kept.length > 1)) dropOldest();
    },
    at: (number) => kept[number - start]?.entry,
    after(offset) {
      const number = offset === null ? undefined : numbers.get(offset);
      if (number !== undefined) return number + 1;
      return beforeStart === offset ? start : null;
    },
  };
}

/** Durable events may be large, but they are rare, so serializing them once more costs little. */
function unitsOf(entry: StreamEntry): number {
  if (entry.type === 'durable') return JSON.stringify(entry.step).length;
  if (entry.type === 'notice') return 0;
  return entry.events.reduce((sum, { text }) => sum + text.length, 0);
}
