import type { DurableEvent } from '../history/durable-events.js';
import { isBefore, isSameAttempt, type LiveAttempt } from './attempt.js';
import { endOf, trimBefore, type Delta } from './delta.js';
import { writePosition, type Position } from './position.js';
import { toPlace, toDeltaEvent, toDurableEvent, type StreamEntry } from './stream-entries.js';
import type { StreamEvent } from './stream-events.js';

/** Durable events that may occur during a model call. Any other shows that the call has ended. */
const DURING_CALL: readonly DurableEvent['type'][] = ['message-added', 'run-paused', 'run-resumed'];
/**
 * Durable events that hold the full reply of a model call, so its deltas need not be superseded.
 */
const REPLIES: readonly DurableEvent['type'][] = [
  'model-replied',
  'answer-refused',
  'transcript-compacted',
];

/** Turns the entries of a stream into the events that one reader has not received yet. */
export interface StreamCursor {
  readonly position: Position;
  advance(entry: StreamEntry): readonly StreamEvent[];
  /** Returns a `gap` if the attempt that the reader was receiving is no longer kept. */
  skipLost(): readonly StreamEvent[];
}

/** Returns what is kept of an attempt from an offset onward; null if nothing is kept of it. */
export type KeptDeltas = (attempt: LiveAttempt, offset: number) => readonly Delta[] | null;

export function createStreamCursor(start: Position, kept: KeptDeltas): StreamCursor {
  let position = start;

  /** Supersedes the deltas received so far; a reader that reconnects after that resumes at `at`. */
  const supersede = (at: Position): readonly StreamEvent[] => {
    const { live } = position;
    if (live === null || live.offset === 0) return [];
    return [{ type: 'superseded', ...toPlace(live.attempt), position: writePosition(at) }];
  };

  const beginAttempt = (attempt: LiveAttempt): readonly StreamEvent[] => {
    const { live } = position;
    if (live !== null && isSameAttempt(live.attempt, attempt)) return [];
    const begun = { ...position, live: { attempt, offset: 0 } };
    const superseded = supersede(begun);
    position = begun;
    return superseded;
  };

  const durable = (step: DurableEvent, event: StreamEvent): readonly StreamEvent[] => {
    const endsCall = !DURING_CALL.includes(step.type);
    const superseded = endsCall && !REPLIES.includes(step.type) ? supersede(position) : [];
    const live = endsCall ? null : position.live;
    position = { durable: step.offset, live };
    return [...superseded, live === null ? event : toDurableEvent(step, live)];
  };

  const gapUntil = (attempt: LiveAttempt, until: number | null): StreamEvent => {
    const offset = position.live?.offset ?? 0;
    position = { ...position, live: { attempt, offset: until ?? offset } };
    return { type: 'gap', ...toPlace(attempt), offset, until, position: writePosition(position) };
  };

  /** `event` is shared by all readers; a reader that continues exactly there gets it unchanged. */
  const deltaEvents = (
    attempt: LiveAttempt,
    delta: Delta,
    event?: StreamEvent,
  ): readonly StreamEvent[] => {
    const offset = position.live?.offset ?? 0;
    if (endOf(delta) <= offset) return [];
    const gap = delta.offset > offset ? [gapUntil(attempt, delta.offset)] : [];
    const fresh = trimBefore(delta, offset);
    position = { ...position, live: { attempt, offset: endOf(fresh) } };
    const isShared = event !== undefined && fresh === delta;
    return [...gap, isShared ? event : toDeltaEvent(attempt, fresh, position.durable)];
  };

  const deltas = ({
    attempt,
    events,
  }: Extract<StreamEntry, { type: 'deltas' }>): readonly StreamEvent[] => {
    const { live } = position;
    // A reader that resumes at a durable event sees superseded attempts again.
    if (live !== null && isBefore(attempt, live.attempt)) return [];
    const begun = beginAttempt(attempt);
    const fresh = events.flatMap((event) => {
      const offset = position.live?.offset ?? 0;
      const missed = event.offset > offset ? (kept(attempt, offset) ?? []) : [];
      if (missed.length === 0) return deltaEvents(attempt, event, event);
      return missed.flatMap((delta) => deltaEvents(attempt, delta));
    });
    return begun.concat(fresh);
  };

  return {
    get position() {
      return position;
    },
    advance(entry) {
      if (entry.type === 'notice') return [entry.event];
      return entry.type === 'durable' ? durable(entry.step, entry.event) : deltas(entry);
    },
    skipLost() {
      const { live } = position;
      if (live === null || live.offset === 0) return [];
      return kept(live.attempt, live.offset) === null ? [gapUntil(live.attempt, null)] : [];
    },
  };
}
