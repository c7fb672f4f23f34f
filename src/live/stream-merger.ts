import type { EventSteps } from '../history/follow-events.js';
import { attemptKey, isSameAttempt, type LiveAttempt } from './attempt.js';
import { createCallOrder } from './call-order.js';
import type { DeltaBatch } from './delta.js';
import type { KeptDeltas } from './stream-cursor.js';
import { deltasEntry, durableEntry, noticeEntry, type StreamEntry } from './stream-entries.js';

/** Merges a run's history and the deltas that workers send into one stream of entries. */
export interface StreamMerger {
  addEvent(event: EventSteps): void;
  addDeltas(batch: DeltaBatch): void;
  /** Adds the reason why no deltas can arrive. */
  addNotice(why: string): void;
  /** Offset of the newest durable event; null before the first. */
  readonly newest: string | null;
  readonly kept: KeptDeltas;
  /** Returns the attempt in progress with all that is kept of it; null if there is none. */
  current(): DeltaBatch | null;
}

/**
 * Creates a merger. `everyMs` returns the current minimum time between two entries of deltas;
 * deltas in between are merged.
 */
export function createStreamMerger(
  push: (entries: readonly StreamEntry[]) => void,
  everyMs: () => number = () => 0,
): StreamMerger {
  const order = createCallOrder();
  /** Keys of the open model calls, by the id of the event that scheduled them. */
  const modelCalls = new Map<number, string>();
  let newest: string | null = null;
  let emitted: { readonly attempt: LiveAttempt; readonly offset: number } | null = null;
  let emittedAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;

  const isEmitted = (attempt: LiveAttempt): boolean =>
    emitted !== null && isSameAttempt(emitted.attempt, attempt);
  const emitDeltas = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const current = order.current();
    if (current === null) return;
    const { attempt, log } = current;
    const isNew = !isEmitted(attempt);
    const deltas = log.since(isNew ? 0 : (emitted?.offset ?? 0));
    emitted = { attempt, offset: log.end };
    // The start of an attempt alone does not delay its first delta.
    if (deltas.length > 0) emittedAt = performance.now();
    if (isNew || deltas.length > 0) push([deltasEntry({ attempt, deltas }, newest)]);
  };

  return {
    addEvent({ runId: segment, event, steps }) {
      // Deltas that arrived before the event precede it.
      if (timer !== undefined) emitDeltas();
      for (const step of steps) newest = step.offset;
      push(steps.map((step) => durableEntry(step)));
      // Event ids restart in each segment, and no call spans two segments.
      if (event.type === 'started') modelCalls.clear();
      if (event.type === 'scheduled' && event.activity === 'callModel') {
        const call = attemptKey({ segment, activity: event.activityId });
        modelCalls.set(event.id, call);
        order.open(call);
        emitDeltas();
      }
      if (event.type === 'completed' || event.type === 'failed' || event.type === 'cancelled') {
        const call = modelCalls.get(event.scheduled);
        if (call !== undefined) order.close(call);
      }
    },
    addDeltas(batch) {
      if (!order.receive(batch)) return;
      const waitMs = emittedAt + everyMs() - performance.now();
      if (waitMs <= 0 || !isEmitted(batch.attempt)) emitDeltas();
      else timer ??= setTimeout(emitDeltas, waitMs);
    },
    addNotice: (why) => push([noticeEntry(why, newest)]),
    get newest() {
      return newest;
    },
    kept(attempt, offset) {
      const current = order.current();
      if (current === null || !isSameAttempt(current.attempt, attempt)) return null;
      return current.log.since(offset);
    },
    current() {
      const current = order.current();
      return current && { attempt: current.attempt, deltas: current.log.since(0) };
    },
  };
}
