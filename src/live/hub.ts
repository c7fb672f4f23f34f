import type { Delta } from '../models/model.js';
import type { LiveAttempt } from './attempt.js';
import { createAttemptLog, type AttemptLog } from './attempt-log.js';
import { pieceOf, type Frame } from './delta.js';

/** Watchers are woken at once by what comes after a silence, else at most so often. */
const EVERY_MS = 40;
/** Replies that ended before a watcher took them; what is older, history tells. */
const KEPT_ENDED = 4;

/** The replies that come in on this worker at the moment. Nothing of it ever goes into a history. */
export interface LiveHub {
  begin(run: string, attempt: LiveAttempt): LiveWriter;
  /**
   * Lets somebody watch a run, from the beginning of what is coming in. `wake` is called when there is
   * something to take. Nobody is waited for: who takes late gets more at once.
   */
  watch(run: string, wake: () => void): LiveWatch;
}

export interface LiveWriter {
  /** Costs next to nothing while nobody watches. */
  push(delta: Delta): void;
  end(): void;
}

export interface LiveWatch {
  /** What has come since the last time. */
  take(): readonly Frame[];
  close(): void;
}

interface OnAir {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
}

interface Watch {
  readonly wake: () => void;
  /** What is to be told, and how much of it has been. */
  readonly taken: Map<OnAir, number>;
}

interface Channel {
  readonly onAir: Set<OnAir>;
  readonly watches: Set<Watch>;
  wokenAt: number;
  waking: NodeJS.Timeout | undefined;
}

export function createLiveHub(): LiveHub {
  const channels = new Map<string, Channel>();

  const channelOf = (run: string): Channel => {
    const known = channels.get(run);
    if (known !== undefined) return known;
    const made = { onAir: new Set<OnAir>(), watches: new Set<Watch>() };
    const channel = { ...made, wokenAt: -EVERY_MS, waking: undefined };
    channels.set(run, channel);
    return channel;
  };
  const tidy = (run: string, channel: Channel): void => {
    if (channel.watches.size > 0) return;
    clearTimeout(channel.waking);
    channel.waking = undefined;
    if (channel.onAir.size === 0 && channels.get(run) === channel) channels.delete(run);
  };

  return {
    begin(run, attempt) {
      const channel = channelOf(run);
      const one: OnAir = { attempt, log: createAttemptLog() };
      channel.onAir.add(one);
      for (const { taken } of channel.watches) taken.set(one, -1);
      wake(channel, { now: true });
      // The first piece does not wait for its turn.
      channel.wokenAt = -EVERY_MS;
      return {
        push(delta) {
          one.log.push(pieceOf(delta));
          if (channel.watches.size > 0 && channel.waking === undefined) wake(channel);
        },
        end() {
          channel.onAir.delete(one);
          // Before the reply is durable, so that nobody who keeps up misses its end.
          wake(channel, { now: true });
          for (const { taken } of channel.watches) forgetEnded(taken, channel.onAir);
          tidy(run, channel);
        },
      };
    },
    watch(run, wakeUp) {
      const channel = channelOf(run);
      const watch: Watch = {
        wake: wakeUp,
        taken: new Map([...channel.onAir].map((one) => [one, -1])),
      };
      channel.watches.add(watch);
      return {
        take: () => takeFrom(watch.taken, channel.onAir),
        close() {
          channel.watches.delete(watch);
          tidy(run, channel);
        },
      };
    },
  };
}

function wake(channel: Channel, { now = false } = {}): void {
  if (channel.watches.size === 0) return;
  const waitMs = channel.wokenAt + EVERY_MS - performance.now();
  if (!now && waitMs > 0) {
    channel.waking ??= setTimeout(() => wake(channel, { now: true }), waitMs);
    return;
  }
  clearTimeout(channel.waking);
  channel.waking = undefined;
  channel.wokenAt = performance.now();
  for (const watch of channel.watches) {
    try {
      watch.wake();
    } catch {
      // Who watches must not cost the reply.
      channel.watches.delete(watch);
    }
  }
}

function takeFrom(taken: Map<OnAir, number>, onAir: ReadonlySet<OnAir>): readonly Frame[] {
  const frames: Frame[] = [];
  for (const [one, offset] of taken) {
    const { attempt, log } = one;
    if (log.end > offset) frames.push({ attempt, pieces: log.since(Math.max(offset, 0)) });
    if (onAir.has(one)) taken.set(one, log.end);
    else taken.delete(one);
  }
  return frames;
}

function forgetEnded(taken: Map<OnAir, number>, onAir: ReadonlySet<OnAir>): void {
  const ended = [...taken.keys()].filter((one) => !onAir.has(one));
  for (const one of ended.slice(0, -KEPT_ENDED)) taken.delete(one);
}
