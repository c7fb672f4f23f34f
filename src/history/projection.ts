import type { CancelRequest } from '../core/state/status.js';
import type { RunInput } from '../core/input/input.js';
import { nextAction, nextWorkStep } from '../core/run/next-action.js';
import type { RunState } from '../core/state/state.js';
import type { Work } from '../core/state/work.js';
import type { Message } from '../core/transcript/messages.js';
import type { Outcome, Retried, Usage } from '../core/transcript/outcome.js';
import { type HistoryEvent, isPermanent } from './history-event.js';
import type { InFlight } from './reader/attempts.js';
import {
  type HistoryReader,
  copyReader,
  createReader,
  interpretQueue,
  processTask,
  readEvent,
} from './reader/history-reader.js';
import {
  type BlockedSince,
  type Change,
  type DecisionView,
  type EndedEvent,
  type EndedTurnOf,
  type EventOf,
  blockedIn,
  noteBlocks,
} from './reader/run-view.js';
import type { NodeWork } from './reader/visits.js';

export { endOutcome, newerMemo, newerPatch, writtenByNewer } from './reader/run-view.js';
export type { InFlight } from './reader/attempts.js';
export type {
  BlockedSince,
  DecisionView,
  EndedEvent,
  EndedTurnOf,
  EventOf,
} from './reader/run-view.js';
export { repliesIn, visitKey, waitedByNode } from './reader/visits.js';
export type { NodeWork } from './reader/visits.js';

/** A run, as projected from its history. */
export interface Projection {
  /** Null until a worker has begun the run. */
  readonly state: RunState | null;
  readonly input: RunInput | null;
  /** All messages in these events; in the first segment, from the beginning. */
  readonly messages: readonly Message[];
  /** The usage of this segment's model calls, by the number of the message that each produced. */
  readonly usageByMessage: ReadonlyMap<number, Usage>;
  /** The attempts at calls and model calls that were retried, by the number of their message. */
  readonly retriedByMessage: ReadonlyMap<number, Retried>;
  /** The same for work without a message so far, by call id or `model`. */
  readonly retriedWork: ReadonlyMap<string, Retried>;
  /** The decisions of people in this segment, oldest first. */
  readonly decisions: readonly DecisionView[];
  /** Turns that have ended in this segment, oldest first. */
  readonly turns: readonly EndedTurnOf[];
  /** Activities in flight, by the id of the event that scheduled them. */
  readonly inFlight: ReadonlyMap<number, InFlight>;
  /** How long the run had waited for people before each message, by its number, in ms. */
  readonly waitedByMessage: ReadonlyMap<number, number>;
  /** The work of the visits of a graph's nodes in this segment, by `visitKey`. */
  readonly visits: ReadonlyMap<string, NodeWork>;
  /** Why work is blocked, by call id or by the kind of work, such as `model`. */
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly ended: EndedEvent | null;
  /** The run's own outcome, once it has ended; null if it left none. */
  readonly outcome: Outcome | null;
  readonly cancelRequested: boolean;
  /** The first request to cancel the run; absent until then. */
  readonly cancel?: CancelRequest;
  /** Unix time in ms; null before the first event. */
  readonly startedAt: number | null;
  /** Id of the newest permanent event; 0 before the first. */
  readonly lastEvent: number;
}

/** Receives the events of a history in order, and projects the run after each one. */
export interface Projector {
  push(event: HistoryEvent): void;
  /** Returns a snapshot, including events that the workflow has yet to process. */
  view(): Projection;
  /**
   * Returns the run after the events that the workflow has processed. Later events never revert it,
   * but the next one may add to it.
   */
  processed(): Projection;
}

/**
 * Creates a projector, which interprets a history as the workflow does, with the same functions. It
 * needs no worker, and it skips unreadable data.
 *
 * The start of a workflow task is applied when a later event confirms it. An event with the same id
 * shows that the server has dropped the task. `onChange` is called after each event of the run that
 * the workflow has processed.
 */
export function createProjector(onChange?: (change: Change) => void): Projector {
  const reader = createReader(onChange);
  let unconfirmed: EventOf<'task-started'> | null = null;
  let lastEvent = 0;
  let lastAt = 0;
  const push = (event: HistoryEvent): void => {
    if (unconfirmed !== null && event.id > unconfirmed.id) readEvent(reader, unconfirmed);
    unconfirmed = event.type === 'task-started' ? event : null;
    lastAt = Math.floor(event.at);
    if (!isPermanent(event)) return;
    lastEvent = event.id;
    readEvent(reader, event);
  };
  /** Returns a copy in which the last completed workflow task has processed its events. */
  const afterTask = (): HistoryReader => {
    const copy = copyReader(reader);
    if (copy.isDue) processTask(copy, lastEvent);
    return copy;
  };
  return {
    push,
    view() {
      const ahead = afterTask();
      // The workflow learns of the rest in a later task, so the clock of the last one is too early.
      ahead.task = { ...ahead.task, at: Math.max(ahead.task.at, lastAt) };
      interpretQueue(ahead);
      noteBlocks(ahead.run, lastEvent);
      return snapshot(ahead, lastEvent);
    },
    processed: () => snapshot(reader, lastEvent),
  };
}

function snapshot({ run }: HistoryReader, lastEvent: number): Projection {
  const {
    state = null,
    blockedSince: _,
    onChange: _listener,
    waitedMs: _waited,
    waitsSince: _since,
    ...remembered
  } = run;
  return { ...remembered, state, blocked: blockedIn(run), lastEvent };
}

/** Returns the run as of the last of these events. */
export function project(events: Iterable<HistoryEvent>): Projection {
  const projector = createProjector();
  for (const event of events) projector.push(event);
  return projector.view();
}

/** The condition for which an open run waits. */
export type Waiting =
  | { readonly type: 'message' }
  /** The run is paused and waits for `resume`. */
  | { readonly type: 'paused' }
  /** `until`: Unix time in ms. */
  | { readonly type: 'time'; readonly until: number };

/**
 * Returns the condition for which a run waits, other than blocked work; null while it works and
 * before it starts.
 */
export function waitingFor({
  state,
  inFlight,
  ended,
}: Pick<Projection, 'state' | 'inFlight' | 'ended'>): Waiting | null {
  if (state === null || ended !== null || inFlight.size > 0) return null;
  const action = nextAction(state);
  switch (action.type) {
    case 'await-message':
      return { type: 'message' };
    case 'await-resume':
      return { type: 'paused' };
    case 'await-time':
      return { type: 'time', until: action.until };
    default:
      return isHeld(state) ? { type: 'paused' } : null;
  }
}

/**
 * Whether work is under way, such as an approved call, of which a paused run starts nothing before
 * `resume`.
 */
function isHeld(state: RunState): boolean {
  const { paused, work } = state;
  const isHolding = (one: Work): boolean =>
    one.phase !== 'in-flight' && nextWorkStep(state, one, Infinity).type === 'wait';
  return paused && work.length > 0 && work.every(isHolding);
}
