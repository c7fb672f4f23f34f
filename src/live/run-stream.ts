import type { Client } from '@temporalio/client';
import { followSteps } from '../history/follow-events.js';
import { describeRun } from '../history/read-run.js';
import { createStreamRing, type StreamRing, type RingSize } from './stream-ring.js';
import type { Frame } from './delta.js';
import { createStreamMerger, type StreamMerger } from './stream-merger.js';

const FEW = 20;
const EACH_MS = 1;
const LONGEST_MS = 250;

/** What comes in of a run's replies, from somewhere, for as long as somebody reads. */
export type LiveSource = (
  run: { readonly id: string; readonly taskQueue: string; readonly namespace: string },
  on: { readonly frame: (frame: Frame) => void; readonly signal: AbortSignal },
) => void;

/** One run as all its readers in this process read it: followed once, however many they are. */
export interface RunStream {
  /** Resolves when the feed knows how the run stands; rejects with a `NoRunError`. */
  readonly ready: Promise<void>;
  readonly ring: StreamRing;
  readonly intake: Pick<StreamMerger, 'newest' | 'kept' | 'current'>;
  /** Nothing more will come; throws what was the matter, if anything was. */
  isOver(): boolean;
  /** Calls back, once, when something has come or the feed is over. @returns how to unsay that */
  onChange(callback: () => void): () => void;
}

export interface FeedOptions {
  readonly id: string;
  readonly sources: readonly LiveSource[];
  /** How many read at the moment. */
  readonly readers: () => number;
  /** Ends the feed: nobody reads any more. */
  readonly signal: AbortSignal;
  readonly ringSize?: RingSize;
}

/** Many readers get more at once, and less often: what a crowd costs grows no further. */
function everyMs(readers: number): number {
  return readers <= FEW ? 0 : Math.min(readers * EACH_MS, LONGEST_MS);
}

/** Begins to follow a run. */
export function openRunStream(client: Client, options: FeedOptions): RunStream {
  const ring = createStreamRing(options.ringSize);
  let waiting = new Set<() => void>();
  let over: { readonly error?: unknown } | null = null;

  let notifying = false;
  const notifyNow = (): void => {
    notifying = false;
    const called = waiting;
    waiting = new Set();
    for (const callback of called) callback();
  };
  /** Once for all that comes in one go: a page of the history has many facts. */
  const notify = (): void => {
    if (!notifying) setImmediate(notifyNow);
    notifying = true;
  };
  const intake = createStreamMerger(
    (items) => {
      for (const item of items) {
        ring.push(item);
        // The reading of the history ends a moment later.
        if (item.type === 'durable' && item.step.type === 'run-ended') over = {};
      }
      if (items.length > 0) notify();
    },
    () => everyMs(options.readers()),
  );
  const ready = new Promise<void>((resolve, reject) => {
    const end = (error?: unknown): void => {
      over ??= { error };
      if (error === undefined) resolve();
      else reject(error);
      notify();
    };
    follow(client, options, { intake, known: resolve }).then(() => end(), end);
  });
  // Whoever waits for it hears of it.
  ready.catch(() => undefined);

  return {
    ready,
    ring,
    intake,
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

/** `known` is called when all is told that was there when it began. */
async function follow(
  client: Client,
  { id, sources, signal }: FeedOptions,
  { intake, known }: { readonly intake: StreamMerger; readonly known: () => void },
): Promise<void> {
  const { runId, taskQueue, historyLength } = await describeRun(client, id);
  const { namespace } = client.options;
  const frame = (told: Frame): void => intake.hear(told);
  for (const source of sources) source({ id, taskQueue, namespace }, { frame, signal });
  for await (const told of followSteps(client, { id, runId, signal })) {
    intake.take(told);
    if (told.fact.id >= historyLength || told.runId !== runId) known();
  }
}
