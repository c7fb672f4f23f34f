import type { Client } from '@temporalio/client';
import { type EventSteps, followSteps } from '../history/follow-events.js';
import type { DurableEvent } from '../history/durable-steps.js';
import { describeRun } from '../history/read-run.js';
import {
  type DeltaBatch,
  type KnownAttempt,
  type LiveAttempt,
  attemptKey,
  createCallOrder,
  isSameAttempt,
  replyKey,
} from './attempts.js';
import { processHub } from './hub.js';
import { type LiveSource, createSourceReading, hubSource } from './live-source.js';
import {
  type KeptDeltas,
  type StreamEntry,
  deltasEntry,
  durableEntry,
  noticeEntry,
  voidEntry,
} from './stream.js';

/** Merges a run's history and the deltas that workers send into one stream of entries. */
interface StreamMerger {
  addEvent(event: EventSteps): void;
  addDeltas(batch: DeltaBatch): void;
  /** Adds the reason why no deltas can arrive. */
  addNotice(why: string): void;
  /** Offset of the newest durable event; null before the first. */
  readonly newest: string | null;
  readonly kept: KeptDeltas;
  /** Returns the replies in progress, each with all that is kept of it. */
  current(): readonly KnownAttempt[];
  /** Whether the history shows the start of a call that may have deltas, and not its end. */
  hasOpenCalls(): boolean;
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
  /** Keys of the open activities that may have deltas, by the id of the event that scheduled them. */
  const calls = new Map<number, string>();
  let newest: string | null = null;
  /** How much of each reply in progress was emitted, by the key of the reply. */
  const emitted = new Map<string, number>();
  let emittedAt = -Infinity;
  let timer: NodeJS.Timeout | undefined;

  const emitDeltas = (): void => {
    clearTimeout(timer);
    timer = undefined;
    for (const { attempt, log } of order.current()) {
      const key = replyKey(attempt);
      const deltas = log.since(emitted.get(key) ?? 0);
      const isNews = deltas.length > 0 || !emitted.has(key);
      emitted.set(key, log.end);
      // The start of an attempt alone does not delay its first delta.
      if (deltas.length > 0) emittedAt = performance.now();
      if (isNews) push([deltasEntry({ attempt, deltas }, newest)]);
    }
  };
  const emitVoid = (attempts: readonly LiveAttempt[]): void => {
    const shown = attempts.filter((attempt) => (emitted.get(replyKey(attempt)) ?? 0) > 0);
    for (const attempt of attempts) emitted.delete(replyKey(attempt));
    if (shown.length > 0) push([voidEntry(shown, newest)]);
  };
  /** Closes a call, and voids what it wrote for a node unless its replies are durable now. */
  const close = (scheduled: number, hasReplies = false): void => {
    const call = calls.get(scheduled);
    if (call === undefined) return;
    calls.delete(scheduled);
    const ended = order.close(call);
    if (!hasReplies) emitVoid(ended);
    for (const key of emitted.keys()) if (key.startsWith(`${call}/`)) emitted.delete(key);
  };

  return {
    addEvent({ runId: segment, event, steps }) {
      // Deltas that arrived before the event precede it.
      if (timer !== undefined) emitDeltas();
      close(endedActivity(event), hasStep(steps, 'node-replied'));
      // Nothing is in progress at the end of a turn, even if the function of a node goes on.
      if (hasStep(steps, 'turn-ended')) for (const scheduled of calls.keys()) close(scheduled);
      for (const step of steps) newest = step.offset;
      push(steps.map((step) => durableEntry(step)));
      // Event ids restart in each segment, and no call spans two segments.
      if (event.type === 'started') calls.clear();
      if (event.type === 'scheduled' && STREAMED.includes(event.activity)) {
        const call = attemptKey({ segment, activity: event.activityId });
        calls.set(event.id, call);
        order.open(call);
        emitDeltas();
      }
    },
    addDeltas(batch) {
      const { isNews, voided } = order.receive(batch);
      emitVoid(voided);
      if (!isNews) return;
      const waitMs = emittedAt + everyMs() - performance.now();
      if (waitMs <= 0 || !emitted.has(replyKey(batch.attempt))) emitDeltas();
      else timer ??= setTimeout(emitDeltas, waitMs);
    },
    addNotice: (why) => push([noticeEntry(why, newest)]),
    get newest() {
      return newest;
    },
    kept: (attempt, offset) =>
      order
        .current()
        .find((one) => isSameAttempt(one.attempt, attempt))
        ?.log.since(offset) ?? null,
    current: order.current,
    hasOpenCalls: () => calls.size > 0,
  };
}

/** Returns the id of the event that scheduled the activity that an event ends; 0 if it ends none. */
function endedActivity(event: EventSteps['event']): number {
  const { type } = event;
  return type === 'completed' || type === 'failed' || type === 'cancelled' ? event.scheduled : 0;
}

function hasStep(steps: EventSteps['steps'], type: DurableEvent['type']): boolean {
  return steps.some((step) => step.type === type);
}

/** Activities with deltas: a step of the run's model, and the function of a node. */
const STREAMED: readonly string[] = ['callModel', 'runTool'];

/** The newest entries of a run's stream, for readers that join late or read slowly. */
interface StreamRing {
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

interface RingSize {
  readonly entries: number;
  /** UTF-16 units of JSON, approximately. */
  readonly units: number;
}

const RING_SIZE: RingSize = { entries: 2_000, units: 4 * 1024 * 1024 };

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
  if (entry.type !== 'deltas') return 0;
  return entry.events.reduce((sum, { text }) => sum + text.length, 0);
}

/** Up to this many readers, deltas are passed on without delay. */
const FEW_READERS = 20;
/** With more readers, deltas are merged for this long per reader, up to the maximum. */
const DELAY_PER_READER_MS = 1;
const MAX_DELAY_MS = 250;

/** The stream of one run, shared by all its readers in this process: the run is followed once. */
export interface RunStream {
  /**
   * Resolves when the stream has everything that existed when it started; rejects with a
   * `NoRunError`.
   */
  readonly ready: Promise<void>;
  readonly ring: StreamRing;
  readonly merger: Pick<StreamMerger, 'newest' | 'kept' | 'current'>;
  /** Whether the stream is complete. Throws the error that ended it, if there was one. */
  isOver(): boolean;
  /**
   * Calls `callback` once, when there is something new or the stream is over. Returns a function
   * that cancels the call.
   */
  onChange(callback: () => void): () => void;
}

export interface RunStreamOptions {
  readonly id: string;
  readonly sources: readonly LiveSource[];
  /** Whether workers of this process send their deltas; they need no address. */
  readonly ownProcess?: boolean;
  /** Called once, with the reason and the fix, if no deltas of the run can arrive. */
  readonly unreachable?: (why: string) => void;
  /** Returns how many readers there are at the moment. */
  readonly readers: () => number;
  /** Ends the stream when the last reader has left. */
  readonly signal: AbortSignal;
  readonly ringSize?: RingSize;
}

/**
 * Returns how long deltas are merged. Many readers get more at once, and less often, to bound the
 * cost of a run.
 */
function delayMs(readers: number): number {
  return readers <= FEW_READERS ? 0 : Math.min(readers * DELAY_PER_READER_MS, MAX_DELAY_MS);
}

/** Starts following a run. */
export function openRunStream(client: Client, options: RunStreamOptions): RunStream {
  const ring = createStreamRing(options.ringSize);
  let waiting = new Set<() => void>();
  let over: { readonly error?: unknown } | null = null;

  let isNotifying = false;
  const notifyNow = (): void => {
    isNotifying = false;
    const called = waiting;
    waiting = new Set();
    for (const callback of called) callback();
  };
  /** Notifies once for everything that arrives together: a page of a history has many events. */
  const notify = (): void => {
    if (!isNotifying) setImmediate(notifyNow);
    isNotifying = true;
  };
  const merger = createStreamMerger(
    (entries) => {
      for (const entry of entries) {
        ring.push(entry);
        // Following the history ends only a moment later.
        if (entry.type === 'durable' && entry.step.type === 'run-ended') over = {};
      }
      if (entries.length > 0) notify();
    },
    () => delayMs(options.readers()),
  );
  const ready = new Promise<void>((resolve, reject) => {
    const end = (error?: unknown): void => {
      over ??= { error };
      if (error === undefined) resolve();
      else reject(error);
      notify();
    };
    follow(client, options, { merger, onCaughtUp: resolve }).then(() => end(), end);
  });
  // Readers that await `ready` get the error; without readers it is not unhandled.
  ready.catch(() => undefined);

  return {
    ready,
    ring,
    merger,
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

/**
 * Follows a run, and calls `onCaughtUp` when everything that existed at the start has been added.
 */
async function follow(
  client: Client,
  { id, sources, ownProcess = false, unreachable, signal }: RunStreamOptions,
  { merger, onCaughtUp }: { readonly merger: StreamMerger; readonly onCaughtUp: () => void },
): Promise<void> {
  const { namespace } = client.options;
  let isReached = false;
  const batch = (received: DeltaBatch): void => {
    isReached = true;
    merger.addDeltas(received);
  };
  // Before anything else, because a worker of this process streams only what is read.
  if (ownProcess) hubSource(processHub)({ id }, { batch, signal });
  const { runId, taskQueue, historyLength } = await describeRun(client, id);
  let isNoticed = false;
  // A worker that is replaced was reached before, so its successor will be.
  const notice = (why: string): void => {
    if (isNoticed || isReached) return;
    isNoticed = true;
    merger.addNotice(why);
    unreachable?.(why);
  };
  const reading = createSourceReading((until) => {
    const on = { batch, unreachable: notice, signal: until };
    for (const source of sources) source({ id, taskQueue, namespace }, on);
  });
  try {
    for await (const next of followSteps(client, { id, runId, signal })) {
      merger.addEvent(next);
      const isCaughtUp = next.event.id >= historyLength || next.runId !== runId;
      if (isCaughtUp) onCaughtUp();
      // Calls of the past have ended, and no worker has anything of them.
      if (isCaughtUp) reading.update(merger.hasOpenCalls());
    }
  } finally {
    reading.stop();
  }
}
