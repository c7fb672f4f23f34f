import type { ModelDelta } from '../models/model.js';
import {
  type AttemptLog,
  type DeltaBatch,
  type LiveAttempt,
  createAttemptLog,
} from './attempts.js';

/** The minimum interval between wakes of a watcher. After a silence, it is woken at once. */
const WAKE_EVERY_MS = 40;
/**
 * The number of ended replies that are kept for a watcher that has not taken them. Older ones are
 * in the history.
 */
const KEPT_ENDED = 4;

/** Holds the replies in progress on this worker. None of this is recorded in a history. */
export interface LiveHub {
  begin(run: string, attempt: LiveAttempt): LiveWriter;
  /**
   * Watches a run, from the beginning of each reply in progress. `wake` is called when there is
   * something to take. The hub never waits for a watcher: one that takes less often gets more at
   * once.
   */
  watch(run: string, wake: () => void): LiveWatch;
  /** Whether anything watches the run. */
  isWatched(run: string): boolean;
}

interface LiveWriter {
  /** Appends to a log. Without a watcher, that is all it does. */
  push(delta: ModelDelta): void;
  /** Ends the reply. `isVoid`: it does not count, although its attempt goes on. */
  end(how?: { readonly isVoid: boolean }): void;
}

interface LiveWatch {
  /** Returns what has arrived since the last call. */
  take(): readonly DeltaBatch[];
  close(): void;
}

interface ReplyInProgress {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
  isVoid: boolean;
}

interface Watch {
  readonly wake: () => void;
  /** How many units of each reply the watcher has taken; -1 before its start. */
  readonly taken: Map<ReplyInProgress, number>;
}

interface Channel {
  readonly replies: Set<ReplyInProgress>;
  readonly watches: Set<Watch>;
  lastWakeAt: number;
  wakeTimer: NodeJS.Timeout | undefined;
}

export function createLiveHub(): LiveHub {
  const channels = new Map<string, Channel>();

  const channelFor = (run: string): Channel => {
    const existing = channels.get(run);
    if (existing !== undefined) return existing;
    const channel: Channel = {
      replies: new Set(),
      watches: new Set(),
      lastWakeAt: -WAKE_EVERY_MS,
      wakeTimer: undefined,
    };
    channels.set(run, channel);
    return channel;
  };
  const removeIfUnused = (run: string, channel: Channel): void => {
    if (channel.watches.size > 0) return;
    clearTimeout(channel.wakeTimer);
    channel.wakeTimer = undefined;
    if (channel.replies.size === 0 && channels.get(run) === channel) channels.delete(run);
  };

  return {
    begin(run, attempt) {
      const channel = channelFor(run);
      const reply: ReplyInProgress = { attempt, log: createAttemptLog(), isVoid: false };
      channel.replies.add(reply);
      for (const { taken } of channel.watches) taken.set(reply, -1);
      wake(channel, { now: true });
      // The first delta wakes the watchers at once.
      channel.lastWakeAt = -WAKE_EVERY_MS;
      return {
        push(delta) {
          reply.log.push(delta);
          if (channel.watches.size > 0 && channel.wakeTimer === undefined) wake(channel);
        },
        end({ isVoid } = { isVoid: false }) {
          if (!channel.replies.delete(reply)) return;
          reply.isVoid = isVoid;
          // The reply is not durable yet, so a watcher that keeps up gets its end first.
          wake(channel, { now: true });
          for (const { taken } of channel.watches) dropOldEnded(taken, channel.replies);
          removeIfUnused(run, channel);
        },
      };
    },
    isWatched: (run) => (channels.get(run)?.watches.size ?? 0) > 0,
    watch(run, wakeUp) {
      const channel = channelFor(run);
      const watch: Watch = {
        wake: wakeUp,
        taken: new Map([...channel.replies].map((reply) => [reply, -1])),
      };
      channel.watches.add(watch);
      return {
        take: () => takeFrom(watch.taken, channel.replies),
        close() {
          channel.watches.delete(watch);
          removeIfUnused(run, channel);
        },
      };
    },
  };
}

function wake(channel: Channel, { now = false } = {}): void {
  if (channel.watches.size === 0) return;
  const waitMs = channel.lastWakeAt + WAKE_EVERY_MS - performance.now();
  if (!now && waitMs > 0) {
    channel.wakeTimer ??= setTimeout(() => wake(channel, { now: true }), waitMs);
    return;
  }
  clearTimeout(channel.wakeTimer);
  channel.wakeTimer = undefined;
  channel.lastWakeAt = performance.now();
  for (const watch of channel.watches) {
    try {
      watch.wake();
    } catch {
      // A failing watcher must not fail the model call.
      channel.watches.delete(watch);
    }
  }
}

function takeFrom(
  taken: Map<ReplyInProgress, number>,
  inProgress: ReadonlySet<ReplyInProgress>,
): readonly DeltaBatch[] {
  const batches: DeltaBatch[] = [];
  for (const [reply, offset] of taken) {
    const { attempt, log, isVoid } = reply;
    if (isVoid) batches.push({ attempt, deltas: [], isVoid });
    else if (log.end > offset) batches.push({ attempt, deltas: log.since(Math.max(offset, 0)) });
    if (inProgress.has(reply)) taken.set(reply, log.end);
    else taken.delete(reply);
  }
  return batches;
}

function dropOldEnded(
  taken: Map<ReplyInProgress, number>,
  inProgress: ReadonlySet<ReplyInProgress>,
): void {
  const ended = [...taken.keys()].filter((reply) => !inProgress.has(reply));
  for (const reply of ended.slice(0, -KEPT_ENDED)) taken.delete(reply);
}

/**
 * Holds the replies in progress of all workers of this process, as long as a client of this process
 * reads the run. Runs of different servers do not mix: the history decides which calls count.
 */
export const processHub: LiveHub = createLiveHub();

/** The queues that workers of this process poll, with the number of workers. */
const polled = new Map<string, number>();

interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

const keyOf = ({ namespace, taskQueue }: Queue): string => JSON.stringify([namespace, taskQueue]);

/** Records that a worker of this process polls a queue. Returns a function that ends it. */
export function pollsHere(queue: Queue): () => void {
  const key = keyOf(queue);
  polled.set(key, (polled.get(key) ?? 0) + 1);
  return () => {
    const left = (polled.get(key) ?? 1) - 1;
    if (left > 0) polled.set(key, left);
    else polled.delete(key);
  };
}

/** Whether a worker of this process polls the queue. */
export function isPolledHere(queue: Queue): boolean {
  return polled.has(keyOf(queue));
}
