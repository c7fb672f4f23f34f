import { show } from '../core/input/input.js';
import { InputError } from '../core/errors.js';

/** A place in a run's history: one of the steps that event `event` of a segment adds. */
export interface Offset {
  readonly runId: string;
  readonly event: number;
  /** From 0. */
  readonly index: number;
}

export function writeOffset({ runId, event, index }: Offset): string {
  return `${runId}:${event}:${index}`;
}

/** Parses a text from `writeOffset`. Throws an `InputError` for any other text. */
export function readOffset(text: string): Offset {
  const [, runId, event, index] = /^([\w-]{1,64}):(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  if (runId === undefined) {
    throw new InputError(
      `from: expected the offset of an event, got ${show(text)}; omit it for all events`,
    );
  }
  return { runId, event: Number(event), index: Number(index) };
}

/** Whether `one` comes after `other`; both are of the same segment. */
export function isAfter(one: Offset, other: Offset): boolean {
  return one.event > other.event || (one.event === other.event && one.index > other.index);
}
