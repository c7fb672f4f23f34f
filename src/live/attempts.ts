import type { ModelDelta } from '../models/model.js';

/** One attempt at one model call: the unit that live deltas belong to. */
export interface LiveAttempt {
  /** Run id of the segment. */
  readonly segment: string;
  /** Temporal's id of the activity, unique within the segment. */
  readonly activity: string;
  /** Counted from 1, as by Temporal. */
  readonly attempt: number;
  readonly turn: number;
  readonly step: number;
}

/** Returns a key for the model call of an attempt, unique within its run. */
export function attemptKey({
  segment,
  activity,
}: Pick<LiveAttempt, 'segment' | 'activity'>): string {
  return `${segment}/${activity}`;
}

export function isSameAttempt(a: LiveAttempt, b: LiveAttempt): boolean {
  return attemptKey(a) === attemptKey(b) && a.attempt === b.attempt;
}

/**
 * Returns whether `b` supersedes `a`: it is a later attempt of the same call, or a later call of
 * the segment. Temporal numbers activities in the order in which they are scheduled.
 */
export function isBefore(a: LiveAttempt, b: LiveAttempt): boolean {
  if (a.segment !== b.segment) return false;
  const distance = Number(b.activity) - Number(a.activity);
  return distance > 0 || (distance === 0 && a.attempt < b.attempt);
}

/**
 * One part of a reply in progress, on its way from the worker to the readers. `offset` is its place
 * in the attempt: the number of UTF-16 units before it, including the names of calls.
 */
export type Delta = ModelDelta & { readonly offset: number };

/** Deltas of one attempt, in order. An empty batch means that the attempt has started. */
export interface DeltaBatch {
  readonly attempt: LiveAttempt;
  readonly deltas: readonly Delta[];
}

/** Returns the UTF-16 units by which a delta lengthens its attempt. */
export function lengthOf({ text, name = '' }: ModelDelta): number {
  return name.length + text.length;
}

/** Returns the offset at which the next delta begins. */
export function endOf(delta: Delta): number {
  return delta.offset + lengthOf(delta);
}

/**
 * Returns the part of a delta from an offset onward; the delta itself if it starts at or after the
 * offset.
 */
export function trimBefore(delta: Delta, offset: number): Delta {
  if (offset <= delta.offset) return delta;
  const cut = offset - delta.offset;
  if (delta.kind !== 'call') return { ...delta, text: delta.text.slice(cut), offset };
  const { name = '', ...rest } = delta;
  const nameRest = name.slice(cut);
  const text = delta.text.slice(Math.max(0, cut - name.length));
  return { ...rest, text, offset, ...(nameRest !== '' && { name: nameRest }) };
}

/**
 * Returns whether `next`, placed at `offset`, directly continues `delta` in the same part of the
 * reply.
 */
function isContinued(delta: Delta, next: ModelDelta, offset: number): boolean {
  return (
    next.name === undefined &&
    delta.kind === next.kind &&
    delta.index === next.index &&
    endOf(delta) === offset
  );
}

/** The number of UTF-16 units that are kept of an attempt: the newest ones. */
const KEPT_UNITS = 1024 * 1024;
/**
 * Deltas are merged up to this size, so that reading the newest one does not copy the whole text.
 */
const MERGED_UNITS = 4_096;

/** The deltas of one attempt, kept for readers that join late or fall behind. */
interface AttemptLog {
  /** UTF-16 units received so far. */
  readonly end: number;
  /** Appends a delta after all others. */
  push(delta: ModelDelta): void;
  /** Appends what is new in these deltas, and returns only that. Ignores repeats and overlaps. */
  receive(deltas: readonly Delta[]): readonly Delta[];
  /** Returns all that is kept from an offset onward, merged into as few deltas as possible. */
  since(offset: number): readonly Delta[];
}

type MutableDelta = Delta & { text: string };

export function createAttemptLog(keptUnits = KEPT_UNITS): AttemptLog {
  /** This log owns these objects, so appending a token allocates no new one. */
  let kept: MutableDelta[] = [];
  let end = 0;

  const add = (delta: ModelDelta, offset: number): void => {
    const last = kept.at(-1);
    if (last !== undefined && lengthOf(last) < MERGED_UNITS && isContinued(last, delta, offset)) {
      last.text += delta.text;
    } else {
      kept.push({ ...delta, offset });
    }
    end = offset + lengthOf(delta);
    // Dropping takes time proportional to the number of deltas, so it is rare and drops half of the
    // log.
    if (end - (kept[0]?.offset ?? end) > 2 * keptUnits) {
      kept = kept.filter((part) => endOf(part) > end - keptUnits);
    }
  };

  return {
    get end() {
      return end;
    },
    push(delta) {
      if (lengthOf(delta) > 0) add(delta, end);
    },
    receive(deltas) {
      const fresh = deltas
        .filter((delta) => endOf(delta) > end)
        .map((delta) => trimBefore(delta, end));
      for (const delta of fresh) add(delta, delta.offset);
      return fresh;
    },
    since(offset) {
      if (offset >= end) return [];
      const first = kept.findLastIndex((delta) => delta.offset <= offset);
      const merged: Delta[] = [];
      for (const delta of kept.slice(Math.max(first, 0))) {
        if (endOf(delta) <= offset) continue;
        const next = trimBefore(delta, offset);
        const last = merged.at(-1);
        if (last !== undefined && isContinued(last, next, next.offset)) {
          merged[merged.length - 1] = { ...last, text: last.text + next.text };
        } else {
          merged.push({ ...next });
        }
      }
      return merged;
    },
  };
}

/**
 * The number of calls that are kept before the history shows them. It never shows those of lost
 * workers.
 */
const KEPT_UNKNOWN = 8;

/** An attempt for which a worker has sent something. */
export interface KnownAttempt {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
}

/**
 * Orders live deltas, which come from any worker at any time, by the history: the deltas of a call
 * come after the call's start and never after its end, and no attempt comes after a later one.
 */
export interface CallOrder {
  /** Receives a batch from a worker. Returns whether it adds anything to an open call. */
  receive(batch: DeltaBatch): boolean;
  /** Records that the history shows the start of a call. */
  open(call: string): void;
  /** Records that the history shows the end of a call, with any result. */
  close(call: string): void;
  /** Returns the newest attempt of the open call; null if no worker has sent anything for one. */
  current(): KnownAttempt | null;
}

export function createCallOrder(): CallOrder {
  const known = new Map<string, KnownAttempt>();
  const open = new Set<string>();

  const dropOldUnknown = (): void => {
    const unknown = [...known.keys()].filter((call) => !open.has(call));
    for (const call of unknown.slice(0, -KEPT_UNKNOWN)) known.delete(call);
  };

  return {
    receive({ attempt, deltas }) {
      const call = attemptKey(attempt);
      const newest = known.get(call);
      if (newest !== undefined && attempt.attempt < newest.attempt.attempt) return false;
      const isNew = newest === undefined || attempt.attempt > newest.attempt.attempt;
      const entry = isNew ? { attempt, log: createAttemptLog() } : newest;
      if (isNew) known.set(call, entry);
      const fresh = entry.log.receive(deltas);
      dropOldUnknown();
      return open.has(call) && (isNew || fresh.length > 0);
    },
    open: (call) => void open.add(call),
    close(call) {
      open.delete(call);
      known.delete(call);
    },
    current() {
      for (const call of open) {
        const newest = known.get(call);
        if (newest !== undefined) return newest;
      }
      return null;
    },
  };
}

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

export interface LiveWriter {
  /** Appends to a log. Without a watcher, that is all it does. */
  push(delta: ModelDelta): void;
  end(): void;
}

export interface LiveWatch {
  /** Returns what has arrived since the last call. */
  take(): readonly DeltaBatch[];
  close(): void;
}

interface ReplyInProgress {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
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
      const reply: ReplyInProgress = { attempt, log: createAttemptLog() };
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
        end() {
          channel.replies.delete(reply);
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
    const { attempt, log } = reply;
    if (log.end > offset) batches.push({ attempt, deltas: log.since(Math.max(offset, 0)) });
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
