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
  /** For a reply to the function of a graph's node. */
  readonly node?: NodePlace;
}

/** Which reply of a node's function an attempt is. */
export interface NodePlace {
  readonly name: string;
  /** The item of an `each`, counted from 1; absent at any other node. */
  readonly item?: number;
  /** Counts the replies of one attempt at the function, from 1. */
  readonly reply: number;
}

/** Returns a key for the activity of an attempt, unique within its run. */
export function attemptKey({
  segment,
  activity,
}: Pick<LiveAttempt, 'segment' | 'activity'>): string {
  return `${segment}/${activity}`;
}

/** Returns a key for the reply of an attempt: a node's function may get several. */
export function replyKey(attempt: LiveAttempt): string {
  return `${attemptKey(attempt)}/${attempt.attempt}/${attempt.node?.reply ?? 0}`;
}

export function isSameAttempt(a: LiveAttempt, b: LiveAttempt): boolean {
  return replyKey(a) === replyKey(b);
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
  /** The reply does not count, although its attempt goes on; there are no more deltas of it. */
  readonly isVoid?: true;
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
export interface AttemptLog {
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
 * The number of calls that are kept before the history shows them: as many as the items of an `each`
 * that may begin together. It never shows those of lost workers.
 */
const KEPT_UNKNOWN = 50;

/** An attempt for which a worker has sent something. */
export interface KnownAttempt {
  readonly attempt: LiveAttempt;
  readonly log: AttemptLog;
}

/** What a batch changes for readers. */
interface Received {
  /** Whether it adds anything to an open call. */
  readonly isNews: boolean;
  /** The replies to a node's function that no longer count. */
  readonly voided: readonly LiveAttempt[];
}

/**
 * Orders live deltas, which come from any worker at any time, by the history: the deltas of a call
 * come after the call's start and never after its end, and no attempt comes after a later one.
 */
interface CallOrder {
  /** Receives a batch from a worker. */
  receive(batch: DeltaBatch): Received;
  /** Records that the history shows the start of a call. */
  open(call: string): void;
  /**
   * Records that the history shows the end of a call, with any result. Returns the replies to a
   * node's function that were in progress.
   */
  close(call: string): readonly LiveAttempt[];
  /** Returns the replies of the newest attempts of all open calls for which a worker has sent something. */
  readonly current: () => readonly KnownAttempt[];
}

/** The newest attempt of a call: its only reply, or those to a node's function by their numbers. */
interface KnownCall {
  readonly attempt: number;
  readonly replies: Map<number, KnownAttempt & { isVoid: boolean }>;
}

export function createCallOrder(): CallOrder {
  const known = new Map<string, KnownCall>();
  const open = new Set<string>();

  const dropOldUnknown = (): void => {
    const unknown = [...known.keys()].filter((call) => !open.has(call));
    for (const call of unknown.slice(0, -KEPT_UNKNOWN)) known.delete(call);
  };
  const inProgress = (call: string): readonly KnownAttempt[] =>
    [...(known.get(call)?.replies.values() ?? [])].filter(({ isVoid }) => !isVoid);
  const ofNode = (call: string): readonly LiveAttempt[] =>
    inProgress(call).flatMap(({ attempt }) => (attempt.node === undefined ? [] : [attempt]));

  return {
    receive({ attempt, deltas, isVoid = false }) {
      const call = attemptKey(attempt);
      const newest = known.get(call);
      if (newest !== undefined && attempt.attempt < newest.attempt) return NOTHING;
      const isLater = newest === undefined || attempt.attempt > newest.attempt;
      const before = isLater ? ofNode(call) : [];
      const { replies } = isLater ? { replies: new Map() as KnownCall['replies'] } : newest;
      if (isLater) known.set(call, { attempt: attempt.attempt, replies });
      const number = attempt.node?.reply ?? 0;
      const isNew = !replies.has(number);
      const entry = replies.get(number) ?? { attempt, log: createAttemptLog(), isVoid: false };
      replies.set(number, entry);
      // Another source may send what is void already.
      if (entry.isVoid) return NOTHING;
      const fresh = entry.log.receive(deltas);
      if (isVoid) replies.set(number, { attempt, log: createAttemptLog(), isVoid });
      dropOldUnknown();
      if (!open.has(call)) return NOTHING;
      const voided = isVoid ? [...before, attempt] : before;
      return { isNews: !isVoid && (isNew || fresh.length > 0), voided };
    },
    open: (call) => void open.add(call),
    close(call) {
      const ended = open.has(call) ? ofNode(call) : [];
      open.delete(call);
      known.delete(call);
      return ended;
    },
    current: () => [...open].flatMap((call) => inProgress(call)),
  };
}

const NOTHING: Received = { isNews: false, voided: [] };
