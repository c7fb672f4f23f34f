import type { ToldFact } from '../client/follow-events.js';
import { callOf, isSameAttempt, type LiveAttempt } from './attempt.js';
import { createCallOrder } from './call-order.js';
import type { Frame, PlacedPiece } from './piece.js';
import { durableItem, frameItems, type KeptPieces, type RunItem } from './run-items.js';

/** Makes of a run's history and of what workers tell one order of items. */
export interface RunIntake {
  take(told: ToldFact): void;
  hear(frame: Frame): void;
  /** Offset of the newest durable event; null before the first. */
  readonly newest: string | null;
  readonly kept: KeptPieces;
  /** The attempt that is being told at the moment, with all that is kept of it. */
  current(): { readonly attempt: LiveAttempt; readonly pieces: readonly PlacedPiece[] } | null;
}

export function createRunIntake(push: (items: readonly RunItem[]) => void): RunIntake {
  const order = createCallOrder();
  /** By the id of the event that scheduled them. */
  const modelCalls = new Map<number, string>();
  let newest: string | null = null;

  const tell = (frame: Frame | null): void => {
    if (frame !== null) push(frameItems(frame, newest));
  };

  return {
    take({ runId: segment, fact, events }) {
      for (const event of events) newest = event.offset;
      push(events.map((event) => durableItem(event)));
      // A new segment counts its events anew, and no call reaches into it.
      if (fact.type === 'started') modelCalls.clear();
      if (fact.type === 'scheduled' && fact.activity === 'callModel') {
        const call = callOf({ segment, activity: fact.activityId });
        modelCalls.set(fact.id, call);
        tell(order.begun(call));
      }
      if (fact.type === 'completed' || fact.type === 'failed' || fact.type === 'cancelled') {
        const call = modelCalls.get(fact.scheduled);
        if (call !== undefined) order.ended(call);
      }
    },
    hear: (frame) => tell(order.heard(frame)),
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
