import type { DurableEvent } from '../history/durable-events.js';
import type { LiveAttempt } from './attempt.js';
import { endOf, type Delta, type DeltaBatch } from './delta.js';
import { writePosition, type Position } from './position.js';
import type { DeltaEvent, StreamEvent } from './stream-events.js';

/** An entry of a run's stream. Its events are created once and shared by all readers. */
export type StreamEntry =
  | { readonly type: 'durable'; readonly step: DurableEvent; readonly event: StreamEvent }
  | {
      readonly type: 'deltas';
      readonly attempt: LiveAttempt;
      /** Empty if the attempt has only started. */
      readonly events: readonly (DeltaEvent & StreamEvent)[];
    }
  | { readonly type: 'notice'; readonly event: StreamEvent };

export function durableEntry(step: DurableEvent): StreamEntry {
  return { type: 'durable', step, event: toDurableEvent(step, null) };
}

/**
 * Creates an entry. `durable` is the offset of the newest durable event before the deltas; null
 * before the first.
 */
export function deltasEntry({ attempt, deltas }: DeltaBatch, durable: string | null): StreamEntry {
  const events = deltas.map((delta) => toDeltaEvent(attempt, delta, durable));
  return { type: 'deltas', attempt, events };
}

/** Creates the entry with the reason why no deltas can arrive. */
export function noticeEntry(message: string, durable: string | null): StreamEntry {
  const position = writePosition({ durable, live: null });
  return { type: 'notice', event: { type: 'deltas-unavailable', message, position } };
}

export function toDurableEvent(step: DurableEvent, live: Position['live']): StreamEvent {
  return { ...step, position: writePosition({ durable: step.offset, live }) };
}

export function toDeltaEvent(
  attempt: LiveAttempt,
  delta: Delta,
  durable: string | null,
): DeltaEvent & StreamEvent {
  const position = writePosition({ durable, live: { attempt, offset: endOf(delta) } });
  return { type: 'delta', ...toPlace(attempt), ...delta, position };
}

/** Returns the fields that identify an attempt for readers. */
export function toPlace({ turn, step, attempt }: LiveAttempt) {
  return { turn, step, attempt };
}
