import type { RunInput } from '../core/input/input.js';
import type { Message } from '../core/transcript/messages.js';
import type { Outcome, Usage } from '../core/outcome.js';
import type { EndedTurn, RunState } from '../core/state.js';
import { isPermanent, type HistoryEvent } from './decode-event.js';
import {
  copyProjectionState,
  emptyProjectionState,
  type BlockedSince,
  type EndedEvent,
  type EventOf,
  type InFlight,
  type ProjectionState,
} from './projection/state.js';
import { applyHistoryEvent } from './projection/apply-event.js';

export {
  outcomeOf,
  type BlockedSince,
  type EndedEvent,
  type InFlight,
} from './projection/state.js';

/** A run as its history shows it. */
export interface Projection {
  /** Null until the agent is loaded. */
  readonly state: RunState | null;
  readonly input: RunInput | null;
  /** All messages in these events: in the first segment from the beginning. */
  readonly messages: readonly Message[];
  /** What the model calls of this segment cost, by the number of the message that each produced. */
  readonly usageByMessage: ReadonlyMap<number, Usage>;
  /** Turns that have ended in this segment, oldest first. */
  readonly turns: readonly EndedTurn[];
  /** Activities in flight, by the id of the event that scheduled them. */
  readonly inFlight: ReadonlyMap<number, InFlight>;
  /** Why work is blocked, by call id or by the kind of work, such as `model`. */
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly ended: EndedEvent | null;
  /** The run's own outcome, once it has ended; null if it left none. */
  readonly outcome: Outcome | null;
  readonly cancelRequested: boolean;
  /** Unix time in ms; null before the first event. */
  readonly startedAt: number | null;
  /** Id of the newest permanent event; 0 before the first. */
  readonly lastEvent: number;
}

/** Takes the events of a history one by one, in order, and projects the run as of then. */
export interface Projector {
  push(event: HistoryEvent): void;
  /** Returns a snapshot, including events that the workflow has yet to process. */
  view(): Projection;
  /** Returns a snapshot of what the workflow has processed. Later events take nothing of it back. */
  processed(): Projection;
}

/**
 * Creates a projector, which applies a history to the reducer that the workflow uses. It needs no
 * worker, and it skips what it cannot interpret.
 *
 * Events before a workflow task, such as the end of an activity, are applied after the messages that
 * the task brings: updates, which the history has after them, and signals. The workflow processes them
 * in this order.
 *
 * The start of a workflow task is applied when a later event confirms it. An event with the same id
 * shows that the server has dropped the task.
 */
export function createProjector(): Projector {
  const projection = emptyProjectionState();
  const held: HistoryEvent[] = [];
  let isTaskCompleted = false;
  let unconfirmed: EventOf<'task-started'> | null = null;
  let lastEvent = 0;
  const release = (): void => {
    for (const event of held.splice(0)) applyHistoryEvent(projection, event);
    isTaskCompleted = false;
  };
  const take = (event: HistoryEvent): void => {
    if (event.type === 'task-completed') isTaskCompleted = true;
    if (isTaskCompleted && (NEXT_TASK.includes(event.type) || isHeld(event))) release();
    if (isHeld(event)) {
      held.push(event);
      return;
    }
    if (!NEUTRAL.includes(event.type)) release();
    applyHistoryEvent(projection, event);
  };
  return {
    push(event) {
      if (unconfirmed !== null && event.id > unconfirmed.id) take(unconfirmed);
      unconfirmed = event.type === 'task-started' ? event : null;
      if (!isPermanent(event)) return;
      lastEvent = event.id;
      take(event);
    },
    view() {
      const ahead = copyProjectionState(projection);
      for (const event of held) applyHistoryEvent(ahead, event);
      return snapshot(ahead, lastEvent);
    },
    processed: () => snapshot(copyProjectionState(projection), lastEvent),
  };
}

/** Events that cause a workflow task, so the workflow processes them after the messages. */
const HELD: readonly HistoryEvent['type'][] = [
  'completed',
  'failed',
  'cancelled',
  'child-ended',
  'child-existed',
  'cancel-requested',
  'timer-fired',
];
/** Events after everything that the previous workflow task processed. */
const NEXT_TASK: readonly HistoryEvent['type'][] = ['task-started', 'signal'];
/** Events that may come between a held event and the moment at which the workflow processes it. */
const NEUTRAL: readonly HistoryEvent['type'][] = [
  'update',
  'signal',
  'task-started',
  'task-completed',
  'other',
];

function isHeld(event: HistoryEvent): boolean {
  return HELD.includes(event.type);
}

function snapshot(projection: ProjectionState, lastEvent: number): Projection {
  const { state, input, messages, usageByMessage, turns, inFlight, blocked } = projection;
  const { ended, outcome, cancelRequested, startedAt } = projection;
  const work = { state, input, messages, usageByMessage, turns, inFlight, blocked };
  return { ...work, ended, outcome, cancelRequested, startedAt, lastEvent };
}

/** Returns the run as of the last of these events. */
export function project(events: Iterable<HistoryEvent>): Projection {
  const projector = createProjector();
  for (const event of events) projector.push(event);
  return projector.view();
}
