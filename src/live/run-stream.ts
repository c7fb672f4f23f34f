import type { Client } from '@temporalio/client';
import { followSteps } from '../history/follow-events.js';
import { describeRun } from '../history/read-run.js';
import type { DeltaBatch } from './delta.js';
import { hubSource, processHub } from './process-hub.js';
import { createStreamMerger, type StreamMerger } from './stream-merger.js';
import { createStreamRing, type RingSize, type StreamRing } from './stream-ring.js';

/** Up to this many readers, deltas are passed on without delay. */
const FEW_READERS = 20;
/** With more readers, deltas are merged for this long per reader, up to the maximum. */
const DELAY_PER_READER_MS = 1;
const MAX_DELAY_MS = 250;

/**
 * A source of live deltas of a run, such as this worker's hub. Sends batches until the signal
 * aborts.
 */
export type LiveSource = (
  run: { readonly id: string; readonly taskQueue: string; readonly namespace: string },
  on: {
    readonly batch: (batch: DeltaBatch) => void;
    /** Called once, with the reason and the fix, if no deltas of the run can arrive. */
    readonly unreachable: (why: string) => void;
    readonly signal: AbortSignal;
  },
) => void;

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
  { id, sources, ownProcess = false, signal }: RunStreamOptions,
  { merger, onCaughtUp }: { readonly merger: StreamMerger; readonly onCaughtUp: () => void },
): Promise<void> {
  const { namespace } = client.options;
  const batch = (received: DeltaBatch): void => merger.addDeltas(received);
  const unreachable = (why: string): void => merger.addNotice(why);
  const on = { batch, unreachable, signal };
  // Before anything else, because a worker of this process streams only what is read.
  if (ownProcess) hubSource(processHub)({ id }, on);
  const { runId, taskQueue, historyLength } = await describeRun(client, id);
  for (const source of sources) source({ id, taskQueue, namespace }, on);
  for await (const next of followSteps(client, { id, runId, signal })) {
    merger.addEvent(next);
    if (next.event.id >= historyLength || next.runId !== runId) onCaughtUp();
  }
}
