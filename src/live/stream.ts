import { InputError } from '../core/errors.js';
import { show } from '../core/text/text.js';
import { readOffset } from '../history/follow-events.js';
import type { DurableEvent } from '../history/durable-steps.js';
import {
  type Delta,
  type DeltaBatch,
  type LiveAttempt,
  endOf,
  isBefore,
  isSameAttempt,
  replyKey,
  trimBefore,
} from './attempts.js';

/** The attempt at a model call that an event belongs to. */
export interface AttemptPosition {
  readonly turn: number;
  readonly step: number;
  /** The attempt at this model call, counted from 1. */
  readonly attempt: number;
}

/**
 * One part of a reply in progress; it is never in the history. The deltas of an attempt, joined in
 * order, are what the model has written so far. Once the reply is durable, its event holds the
 * whole text, and only that counts.
 */
export type DeltaEvent = AttemptPosition & { readonly type: 'delta' } & Delta;

/** The reply to the function of a graph's node (`context.generate`) that an event belongs to. */
export interface NodeReplyPosition {
  readonly turn: number;
  readonly node: string;
  /** The item of an `each`, counted from 1; absent at any other node. */
  readonly item?: number;
  /** The attempt at the function, counted from 1. */
  readonly attempt: number;
  /** Counts the calls of `generate` in this attempt, with the repairs of replies, from 1. */
  readonly reply: number;
}

/**
 * One part of a reply in progress to the function of a node; it is never in the history, and it is
 * no part of the answer. Several replies may be in progress at the same time. A reader that resumes
 * gets each from its beginning again, so an `offset` of 0 begins the text anew. The durable events
 * `node-replied` and `node-ended` end the replies of their node.
 */
export type NodeDeltaEvent = NodeReplyPosition & { readonly type: 'node-delta' } & Delta;

/** An event about a reply in progress. It is not durable: after a restart of the worker it does not come again. */
export type LiveEvent =
  | DeltaEvent
  /** The deltas of this attempt are void: it failed, or its worker was lost. */
  | (AttemptPosition & { readonly type: 'superseded' })
  | NodeDeltaEvent
  /**
   * The deltas of this reply are void: its attempt failed, its worker was lost, or it does not fit
   * the `output` that the function asked for.
   */
  | (NodeReplyPosition & { readonly type: 'node-superseded' })
  /** Deltas are missing from `offset` up to `until`; null: up to the end of the attempt. */
  | (AttemptPosition & {
      readonly type: 'gap';
      readonly offset: number;
      readonly until: number | null;
    })
  /**
   * No worker of the run can be read, so its replies arrive only when they are complete. `message`
   * says why, and what to set. At most once for a reader.
   */
  | { readonly type: 'deltas-unavailable'; readonly message: string };

/** The durable events of a run, with the live events in between, in one order. */
export type StreamEvent = (DurableEvent | LiveEvent) & {
  /** The event's place in the stream, to pass back as `after`. Its format may change. */
  readonly position: string;
};

/** How far a reader of a stream has read. */
export interface Position {
  /** Offset of the last durable event; null before the first one. */
  readonly durable: string | null;
  /** The attempt in progress, and how many UTF-16 units of it the reader has received. */
  readonly live: { readonly attempt: LiveAttempt; readonly offset: number } | null;
}

export const BEGINNING: Position = { durable: null, live: null };

/** Returns a position as its readers pass it back as `after`. */
export function writePosition({ durable, live }: Position): string {
  if (live === null) return durable ?? '';
  const { segment, activity, attempt, turn, step } = live.attempt;
  return [durable ?? '', segment, activity, attempt, turn, step, live.offset].join('~');
}

/** Parses what `writePosition` wrote. Throws an `InputError` for any other text. */
export function readPosition(text: string): Position {
  const [durable = '', ...live] = text.split('~');
  if (durable !== '') readOffset(durable);
  const place = { durable: durable === '' ? null : durable, live: null };
  if (live.length === 0) return place;
  const [, segment, activity, ...numbers] =
    /^([\w-]{1,64})~([\w-]{1,64})~(\d{1,15})~(\d{1,15})~(\d{1,15})~(\d{1,15})$/.exec(
      live.join('~'),
    ) ?? [];
  if (segment === undefined || activity === undefined) {
    throw new InputError(
      `after: expected the position of an event, got ${show(text)}; omit it for all events`,
    );
  }
  const [attempt = 0, turn = 0, step = 0, offset = 0] = numbers.map(Number);
  return { ...place, live: { attempt: { segment, activity, attempt, turn, step }, offset } };
}

type SharedDelta = (DeltaEvent | NodeDeltaEvent) & StreamEvent;

/** An entry of a run's stream. Its events are created once and shared by all readers. */
export type StreamEntry =
  | { readonly type: 'durable'; readonly step: DurableEvent; readonly event: StreamEvent }
  | {
      readonly type: 'deltas';
      readonly attempt: LiveAttempt;
      /** Empty if the attempt has only started. */
      readonly events: readonly SharedDelta[];
    }
  /** Replies to the function of a node that do not count. */
  | {
      readonly type: 'void';
      readonly attempts: readonly LiveAttempt[];
      readonly events: readonly StreamEvent[];
    }
  | { readonly type: 'notice'; readonly events: readonly StreamEvent[] };

export function durableEntry(step: DurableEvent): StreamEntry {
  return { type: 'durable', step, event: toDurableEvent(step, null) };
}

/**
 * Creates an entry. `durable` is the offset of the newest durable event before the deltas; null
 * before the first.
 */
export function deltasEntry({ attempt, deltas }: DeltaBatch, durable: string | null): StreamEntry {
  const events = deltas.map((delta) => toDeltaEvent(attempt, delta, durable));
  return { type: 'deltas', attempt, events };
}

/** Creates the entry for replies to the function of a node that do not count. */
export function voidEntry(attempts: readonly LiveAttempt[], durable: string | null): StreamEntry {
  const position = writePosition({ durable, live: null });
  const events = attempts.flatMap((attempt): StreamEvent[] => {
    const place = nodePlace(attempt);
    return place === null ? [] : [{ type: 'node-superseded', ...place, position }];
  });
  return { type: 'void', attempts, events };
}

/** Creates the entry with the reason why no deltas can arrive. */
export function noticeEntry(message: string, durable: string | null): StreamEntry {
  const position = writePosition({ durable, live: null });
  return { type: 'notice', events: [{ type: 'deltas-unavailable', message, position }] };
}

function toDurableEvent(step: DurableEvent, live: Position['live']): StreamEvent {
  return { ...step, position: writePosition({ durable: step.offset, live }) };
}

function toDeltaEvent(attempt: LiveAttempt, delta: Delta, durable: string | null): SharedDelta {
  const place = nodePlace(attempt);
  // A reply to a node has no place of its own: a reader that resumes gets it from its beginning.
  if (place !== null) {
    const position = writePosition({ durable, live: null });
    return { ...place, ...delta, type: 'node-delta', position };
  }
  const position = writePosition({ durable, live: { attempt, offset: endOf(delta) } });
  return { type: 'delta', ...toPlace(attempt), ...delta, position };
}

/** Returns the fields that identify an attempt for readers. */
function toPlace({ turn, step, attempt }: LiveAttempt) {
  return { turn, step, attempt };
}

/** Returns the fields that identify a reply to the function of a node; null for any other. */
function nodePlace({ turn, attempt, node: of }: LiveAttempt): NodeReplyPosition | null {
  if (of === undefined) return null;
  const { name: node, item, reply } = of;
  return { turn, node, ...(item !== undefined && { item }), attempt, reply };
}

/** Durable events that may occur during a model call. Any other shows that the call has ended. */
const DURING_CALL: readonly DurableEvent['type'][] = ['message-added', 'run-paused', 'run-resumed'];
/**
 * Durable events that hold the full reply of a model call, so its deltas need not be superseded.
 */
const REPLIES: readonly DurableEvent['type'][] = [
  'model-replied',
  'answer-refused',
  'transcript-compacted',
];

/** Turns the entries of a stream into the events that one reader has not received yet. */
export interface StreamCursor {
  readonly position: Position;
  advance(entry: StreamEntry): readonly StreamEvent[];
  /** Returns a `gap` if the attempt that the reader was following has been dropped. */
  skipLost(): readonly StreamEvent[];
}

/** Returns what is kept of an attempt from an offset onward; null if nothing is kept of it. */
export type KeptDeltas = (attempt: LiveAttempt, offset: number) => readonly Delta[] | null;

/** Follows the replies in progress to the functions of nodes, for one reader. */
function createNodeReader(kept: KeptDeltas) {
  /** How much the reader has received of each reply, by its key. */
  const received = new Map<string, number>();
  return {
    /** Returns what the reader has not received yet. */
    read({ attempt, events }: DeltasEntry, durable: string | null): readonly StreamEvent[] {
      const key = replyKey(attempt);
      return events.flatMap((event) => {
        const before = received.get(key) ?? 0;
        const missed = event.offset > before ? (kept(attempt, before) ?? []) : [];
        return (missed.length === 0 ? [event] : missed).flatMap((delta) => {
          const offset = received.get(key) ?? 0;
          if (endOf(delta) <= offset) return [];
          const fresh = trimBefore(delta, offset);
          received.set(key, endOf(fresh));
          return [fresh === event ? event : toDeltaEvent(attempt, fresh, durable)];
        });
      });
    },
    /** Forgets replies that are over; by default, all. */
    forget(attempts?: readonly LiveAttempt[]): void {
      if (attempts === undefined) received.clear();
      for (const attempt of attempts ?? []) received.delete(replyKey(attempt));
    },
  };
}

export function createStreamCursor(start: Position, kept: KeptDeltas): StreamCursor {
  const steps = createStepReader(start, kept);
  const nodes = createNodeReader(kept);
  return {
    get position() {
      return steps.position;
    },
    advance(entry) {
      if (entry.type === 'durable') {
        const { type } = entry.step;
        if (type === 'node-ended' || type === 'turn-ended') nodes.forget();
        return steps.durable(entry.step, entry.event);
      }
      if (entry.type === 'deltas') {
        const isOfNode = entry.attempt.node !== undefined;
        return isOfNode ? nodes.read(entry, steps.position.durable) : steps.deltas(entry);
      }
      if (entry.type === 'void') nodes.forget(entry.attempts);
      return entry.events;
    },
    skipLost: () => steps.skipLost(),
  };
}

type DeltasEntry = Extract<StreamEntry, { type: 'deltas' }>;

/** Follows the durable events and the replies of the run's model, for one reader. */
function createStepReader(start: Position, kept: KeptDeltas) {
  let position = start;

  /** Supersedes the deltas received so far; a reader that reconnects after that resumes at `at`. */
  const supersede = (at: Position): readonly StreamEvent[] => {
    const { live } = position;
    if (live === null || live.offset === 0) return [];
    return [{ type: 'superseded', ...toPlace(live.attempt), position: writePosition(at) }];
  };

  const beginAttempt = (attempt: LiveAttempt): readonly StreamEvent[] => {
    const { live } = position;
    if (live !== null && isSameAttempt(live.attempt, attempt)) return [];
    const begun = { ...position, live: { attempt, offset: 0 } };
    const superseded = supersede(begun);
    position = begun;
    return superseded;
  };

  const durable = (step: DurableEvent, event: StreamEvent): readonly StreamEvent[] => {
    const endsCall = !DURING_CALL.includes(step.type);
    const superseded = endsCall && !REPLIES.includes(step.type) ? supersede(position) : [];
    const live = endsCall ? null : position.live;
    position = { durable: step.offset, live };
    return [...superseded, live === null ? event : toDurableEvent(step, live)];
  };

  const gapUntil = (attempt: LiveAttempt, until: number | null): StreamEvent => {
    const offset = position.live?.offset ?? 0;
    position = { ...position, live: { attempt, offset: until ?? offset } };
    return { type: 'gap', ...toPlace(attempt), offset, until, position: writePosition(position) };
  };

  /** `event` is shared by all readers; a reader that continues exactly there gets it unchanged. */
  const deltaEvents = (
    attempt: LiveAttempt,
    delta: Delta,
    event?: StreamEvent,
  ): readonly StreamEvent[] => {
    const offset = position.live?.offset ?? 0;
    if (endOf(delta) <= offset) return [];
    const gap = delta.offset > offset ? [gapUntil(attempt, delta.offset)] : [];
    const fresh = trimBefore(delta, offset);
    position = { ...position, live: { attempt, offset: endOf(fresh) } };
    const isShared = event !== undefined && fresh === delta;
    return [...gap, isShared ? event : toDeltaEvent(attempt, fresh, position.durable)];
  };

  const deltas = ({ attempt, events }: DeltasEntry): readonly StreamEvent[] => {
    const { live } = position;
    // A reader that resumes at a durable event sees superseded attempts again.
    if (live !== null && isBefore(attempt, live.attempt)) return [];
    const begun = beginAttempt(attempt);
    const fresh = events.flatMap((event) => {
      const offset = position.live?.offset ?? 0;
      const missed = event.offset > offset ? (kept(attempt, offset) ?? []) : [];
      if (missed.length === 0) return deltaEvents(attempt, event, event);
      return missed.flatMap((delta) => deltaEvents(attempt, delta));
    });
    return begun.concat(fresh);
  };

  return {
    get position() {
      return position;
    },
    durable,
    deltas,
    skipLost(): readonly StreamEvent[] {
      const { live } = position;
      if (live === null || live.offset === 0) return [];
      return kept(live.attempt, live.offset) === null ? [gapUntil(live.attempt, null)] : [];
    },
  };
}
