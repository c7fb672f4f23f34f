import type { RunInput } from '../core/input/input.js';
import type { Message } from '../core/transcript/messages.js';
import type { Outcome, Usage } from '../core/outcome.js';
import type { EndedTurn, RunState } from '../core/state.js';
import type { HistoryEvent } from './decode-event.js';
import {
  copyOf,
  emptyProjectionState,
  type BlockedSince,
  type EndedEvent,
  type InFlight,
  type ProjectionState,
} from './projection/state.js';
import { applyHistoryEvent } from './projection/apply-event.js';

export { outcomeOf, type BlockedSince, type EndedEvent, type InFlight } from './projection/state.js';

/** A run as its history tells it. */
export interface Projection {
  /** Null until the agent is loaded. */
  readonly state: RunState | null;
  readonly input: RunInput | null;
  /** All that was said, as far as these events tell: in the first segment from the beginning. */
  readonly said: readonly Message[];
  /** What the model calls of this segment cost, by number of the message that each brought. */
  readonly paid: ReadonlyMap<number, Usage>;
  /** Turns that have ended in this segment, oldest first. */
  readonly turns: readonly EndedTurn[];
  /** By the id of the scheduling event, which is the activity's id too. */
  readonly inFlight: ReadonlyMap<number, InFlight>;
  /** Call id, or `model` → why it stands still. */
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly ended: EndedEvent | null;
  /** The run's own outcome, once it has ended; null where it left none. */
  readonly outcome: Outcome | null;
  readonly cancelRequested: boolean;
  /** Unix time in ms; null before the first event. */
  readonly startedAt: number | null;
  /** Id of the newest event told; 0 before the first. */
  readonly lastEvent: number;
}

/** Takes the events of a history one by one, in order, and shows the run as of then. */
export interface Projector {
  push(fact: HistoryEvent): void;
  /** A snapshot: later events do not change it. What the workflow has yet to look at is told ahead. */
  view(): Projection;
  /** A snapshot of what the workflow has looked at: nothing in it is taken back by what comes later. */
  settled(): Projection;
}

/**
 * Retells a run from its history with the same reducer that the workflow uses, so it works while no
 * worker is up. It only reads: where a history holds something unknown, that is passed over.
 *
 * What happened before a workflow task (an activity ended) is told after what people said in it: an
 * update, which the history has behind it, or a signal. In this order the workflow hears of them.
 */
export function createProjector(): Projector {
  const told = emptyProjectionState();
  const held: HistoryEvent[] = [];
  let looked = false;
  const release = (): void => {
    for (const fact of held.splice(0)) applyHistoryEvent(told, fact);
    looked = false;
  };
  return {
    push(fact) {
      told.lastEvent = fact.id;
      if (fact.type === 'task-completed') looked = true;
      if (looked && (OPENING.includes(fact.type) || isNews(fact))) release();
      if (isNews(fact)) {
        held.push(fact);
        return;
      }
      if (!TRANSPARENT.includes(fact.type)) release();
      applyHistoryEvent(told, fact);
    },
    view() {
      const ahead = copyOf(told);
      for (const fact of held) applyHistoryEvent(ahead, fact);
      return shown(ahead, told.lastEvent);
    },
    settled: () => shown(copyOf(told), told.lastEvent),
  };
}

/** What a workflow task is begun for, and therefore hears of behind the words of people. */
const NEWS: readonly HistoryEvent['type'][] = [
  'completed',
  'failed',
  'cancelled',
  'child-ended',
  'child-existed',
  'cancel-requested',
  'timer-fired',
];
/** What stands behind everything that the workflow task before it dealt with. */
const OPENING: readonly HistoryEvent['type'][] = ['task-started', 'signal'];
/** What may stand between the news and the moment at which the workflow has heard of them. */
const TRANSPARENT: readonly HistoryEvent['type'][] = [
  'update',
  'signal',
  'task-started',
  'task-completed',
  'other',
];

function isNews(fact: HistoryEvent): boolean {
  return NEWS.includes(fact.type);
}

function shown(told: ProjectionState, lastEvent: number): Projection {
  const { state, input, said, paid, turns, inFlight, blocked } = told;
  const { ended, outcome, cancelRequested, startedAt } = told;
  const seen = { state, input, said, paid, turns, inFlight, blocked };
  return { ...seen, ended, outcome, cancelRequested, startedAt, lastEvent };
}

/** The run as all of these events tell it. */
export function project(facts: Iterable<HistoryEvent>): Projection {
  const projector = createProjector();
  for (const fact of facts) projector.push(fact);
  return projector.view();
}
