import type { ModelDelta } from '../models/model.js';
import { endOf, isContinued, lengthOf, trimBefore, type Delta } from './delta.js';

/** The number of UTF-16 units that are kept of an attempt: the newest ones. */
const KEPT_UNITS = 1024 * 1024;
/**
 * Deltas are merged up to this size, so that reading the newest one does not copy the whole text.
 */
const MERGED_UNITS = 4_096;

/** The deltas of one attempt, kept for readers that join late or fall behind. */
export interface AttemptLog {
  /** UTF-16 units received so far. */
  readonly end: number;
  /** Appends a delta after all others. */
  push(delta: ModelDelta): void;
  /** Appends what is new in these deltas, and returns only that. Ignores repeats and overlaps. */
  receive(deltas: readonly Delta[]): readonly Delta[];
  /** Returns all that is kept from an offset onward, merged into as few deltas as possible. */
  since(offset: number): readonly Delta[];
}

type MutableDelta = Delta & { text: string };

export function createAttemptLog(keptUnits = KEPT_UNITS): AttemptLog {
  /** This log owns these objects, so appending a token allocates no new one. */
  let kept: MutableDelta[] = [];
  let end = 0;

  const add = (delta: ModelDelta, offset: number): void => {
    const last = kept.at(-1);
    if (last !== undefined && lengthOf(last) < MERGED_UNITS && isContinued(last, delta, offset)) {
      last.text += delta.text;
    } else {
      kept.push({ ...delta, offset });
    }
    end = offset + lengthOf(delta);
    // Dropping takes time proportional to the number of deltas, so it is rare and drops half of the
    // log.
    if (end - (kept[0]?.offset ?? end) > 2 * keptUnits) {
      kept = kept.filter((part) => endOf(part) > end - keptUnits);
    }
  };

  return {
    get end() {
      return end;
    },
    push(delta) {
      if (lengthOf(delta) > 0) add(delta, end);
    },
    receive(deltas) {
      const fresh = deltas
        .filter((delta) => endOf(delta) > end)
        .map((delta) => trimBefore(delta, end));
      for (const delta of fresh) add(delta, delta.offset);
      return fresh;
    },
    since(offset) {
      if (offset >= end) return [];
      const first = kept.findLastIndex((delta) => delta.offset <= offset);
      const merged: Delta[] = [];
      for (const delta of kept.slice(Math.max(first, 0))) {
        if (endOf(delta) <= offset) continue;
        const next = trimBefore(delta, offset);
        const last = merged.at(-1);
        if (last !== undefined && isContinued(last, next, next.offset)) {
          merged[merged.length - 1] = { ...last, text: last.text + next.text };
        } else {
          merged.push({ ...next });
        }
      }
      return merged;
    },
  };
}
