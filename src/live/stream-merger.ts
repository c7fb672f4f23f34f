import type { EventSteps } from '../history/follow-events.js';
import { callOf, isSameAttempt, type LiveAttempt } from './attempt.js';
import { createCallOrder } from './call-order.js';
import type { Frame, PlacedPiece } from './delta.js';
import { durableItem, frameItems, type KeptPieces, type RunItem } from './stream-cursor.js';

/** Makes of a run's history and of what workers tell one order of items. */
export interface StreamMerger {
  take(told: EventSteps): void;
  hear(frame: Frame): void;
  /** Offset of the newest durable event; null before the first. */
  readonly newest: string | null;
  readonly kept: KeptPieces;
  /** The attempt that is being told at the moment, with all that is kept of it. */
  current(): { readonly attempt: LiveAttempt; readonly pieces: readonly PlacedPiece[] } | null;
}

/** `everyMs`: how often pieces are told at most, as of now; what comes meanwhile is told as one. */
export function createStreamMerger(
  push: (items: readonly RunItem[]) => void,
  everyMs: () => number = () => 0,
): StreamMerger {
  const order = createCallOrder();
  /** By the id of the event that scheduled them. */
  const modelCalls = new Map<number, string>();
  let newest: string | null = null;
  let told: { readonly attempt: LiveAttempt; readonly offset: number } | null = null;
  let toldAt = -Infinity;
  let telling: NodeJS.Timeout | undefined;

  const isTold = (attempt: LiveAttempt): boolean =>
    told !== null && isSameAttempt(told.attempt, attempt);
  const tell = (): void => {
    clearTimeout(telling);
    telling = undefined;
    const current = order.current();
    if (current === null) return;
    const { attempt, log } = current;
    const isNew = !isTold(attempt);
    const pieces = log.since(isNew ? 0 : (told?.offset ?? 0));
    told = { attempt, offset: log.end };
    // That it has begun is no reason to let its first word wait.
    if (pieces.length > 0) toldAt = performance.now();
    if (isNew || pieces.length > 0) push(frameItems({ attempt, pieces }, newest));
  };

  return {
    take({ runId: segment, fact, events }) {
      // What was said before something happened is told before it.
      if (telling !== undefined) tell();
      for (const event of events) newest = event.offset;
      push(events.map((event) => durableItem(event)));
      // A new segment counts its events anew, and no call reaches into it.
      if (fact.type === 'started') modelCalls.clear();
      if (fact.type === 'scheduled' && fact.activity === 'callModel') {
        const call = callOf({ segment, activity: fact.activityId });
        modelCalls.set(fact.id, call);
        order.begun(call);
        tell();
      }
      if (fact.type === 'completed' || fact.type === 'failed' || fact.type === 'cancelled') {
        const call = modelCalls.get(fact.scheduled);
        if (call !== undefined) order.ended(call);
      }
    },
    hear(frame) {
      if (!order.heard(frame)) return;
      const waitMs = toldAt + everyMs() - performance.now();
      if (waitMs <= 0 || !isTold(frame.attempt)) tell();
      else telling ??= setTimeout(tell, waitMs);
    },
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
      return current && { attempt: current.attempt, pieces: current.log.since(0) };
    },
  };
}
