import type { Client } from '@temporalio/client';
import { followTold, type ToldFact } from '../client/follow-events.js';
import { describeRun } from '../client/read-run.js';
import { callOf, isSameAttempt, type LiveAttempt } from './attempt.js';
import { createCallOrder } from './call-order.js';
import { createItemRing, type ItemRing, type RingSize } from './item-ring.js';
import type { Frame, PlacedPiece } from './piece.js';
import { durableItem, frameItems, type KeptPieces, type RunItem } from './run-items.js';

/** What comes in of a run's replies, from somewhere, for as long as somebody reads. */
export type LiveSource = (
  run: { readonly id: string; readonly taskQueue: string; readonly namespace: string },
  on: { readonly frame: (frame: Frame) => void; readonly signal: AbortSignal },
) => void;

/** One run as all its readers in this process read it: followed once, however many they are. */
export interface RunFeed {
  /** Resolves when the feed knows how the run stands; rejects with a `NoRunError`. */
  readonly ready: Promise<void>;
  readonly ring: ItemRing;
  /** Offset of the newest durable event. */
  readonly newest: string | null;
  readonly kept: KeptPieces;
  /** The attempt that is being told at the moment, with all that is kept of it. */
  current(): { readonly attempt: LiveAttempt; readonly pieces: readonly PlacedPiece[] } | null;
  /** Nothing more will come; throws what was the matter, if anything was. */
  isOver(): boolean;
  /** Calls back, once, when something has come or the feed is over. @returns how to unsay that */
  onChange(callback: () => void): () => void;
}

export interface FeedOptions {
  readonly id: string;
  readonly sources: readonly LiveSource[];
  /** Ends the feed: nobody reads any more. */
  readonly signal: AbortSignal;
  readonly ringSize?: RingSize;
}

/** Begins to follow a run. */
export function openRunFeed(client: Client, options: FeedOptions): RunFeed {
  const { id, sources, signal, ringSize } = options;
  const ring = createItemRing(ringSize);
  const order = createCallOrder();
  const modelCalls = new Map<number, string>();
  let waiting = new Set<() => void>();
  let newest: string | null = null;
  let over: { readonly error?: unknown } | null = null;

  const notify = (): void => {
    const called = waiting;
    waiting = new Set();
    for (const callback of called) callback();
  };
  const push = (items: readonly RunItem[]): void => {
    for (const item of items) ring.push(item);
    if (items.length > 0) notify();
  };
  const hear = (frame: Frame | null): void => {
    if (frame !== null) push(frameItems(frame, newest));
  };
  const take = ({ runId: segment, fact, events }: ToldFact): void => {
    for (const event of events) newest = event.offset;
    // The reading of the history ends a moment later.
    if (events.some(({ type }) => type === 'run-ended')) over = {};
    push(events.map((event) => durableItem(event)));
    // A new segment counts its events anew, and no call reaches into it.
    if (fact.type === 'started') modelCalls.clear();
    if (fact.type === 'scheduled' && fact.activity === 'callModel') {
      const call = callOf({ segment, activity: fact.activityId });
      modelCalls.set(fact.id, call);
      hear(order.begun(call));
    }
    if (fact.type === 'completed' || fact.type === 'failed' || fact.type === 'cancelled') {
      const call = modelCalls.get(fact.scheduled);
      if (call !== undefined) order.ended(call);
    }
  };

  const follow = async (known: () => void): Promise<void> => {
    const { runId, taskQueue, historyLength } = await describeRun(client, id);
    const { namespace } = client.options;
    const on = { frame: (frame: Frame) => hear(order.heard(frame)), signal };
    for (const source of sources) source({ id, taskQueue, namespace }, on);
    for await (const told of followTold(client, { id, runId, signal })) {
      take(told);
      // What was there when it began is the past.
      if (told.fact.id >= historyLength || told.runId !== runId) known();
    }
  };
  const ready = new Promise<void>((resolve, reject) => {
    follow(resolve)
      .then(
        () => (over ??= {}),
        (error: unknown) => (over ??= { error }),
      )
      .finally(() => {
        if (over?.error === undefined) resolve();
        else reject(over.error);
        notify();
      })
      .catch(() => undefined);
  });
  // Whoever waits for it hears of it.
  ready.catch(() => undefined);

  return {
    ready,
    ring,
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
    isOver() {
      if (over?.error !== undefined) throw over.error;
      return over !== null;
    },
    onChange(callback) {
      waiting.add(callback);
      return () => void waiting.delete(callback);
    },
  };
}
