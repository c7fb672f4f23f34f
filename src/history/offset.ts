import { show } from '../core/input/input.js';
import { InputError } from '../core/errors.js';

/** A place in a run's history: the `index`th step that event `event` of a segment tells of. */
export interface Offset {
  readonly runId: string;
  readonly event: number;
  /** From 0. */
  readonly index: number;
}

export function writeOffset({ runId, event, index }: Offset): string {
  return `${runId}:${event}:${index}`;
}

/** Throws an `InputError` for what is no offset. */
export function readOffset(text: string): Offset {
  const [, runId, event, index] = /^([\w-]{1,64}):(\d{1,15}):(\d{1,15})$/.exec(text) ?? [];
  if (runId === undefined) {
    throw new InputError(`from: ${show(text)} is no offset; give the one of an event, or none`);
  }
  return { runId, event: Number(event), index: Number(index) };
}

/** Whether `one` comes after `other`, in the same segment. */
export function isAfter(one: Offset, other: Offset): boolean {
  return one.event > other.event || (one.event === other.event && one.index > other.index);
}
