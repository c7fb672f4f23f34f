import type { RunInput } from '../core/input.js';
import type { Message } from '../core/messages.js';
import type { Outcome } from '../core/outcome.js';
import type { EndedTurn, RunState } from '../core/state.js';
import type { HistoryFact } from './history-facts.js';
import {
  emptyRetelling,
  type BlockedSince,
  type EndedFact,
  type InFlight,
} from './retelling-state.js';
import { retell } from './retelling.js';

export { outcomeOf, type BlockedSince, type EndedFact, type InFlight } from './retelling-state.js';

/** A run as its history tells it. */
export interface Projection {
  /** Null until the agent is loaded. */
  readonly state: RunState | null;
  readonly input: RunInput | null;
  /** All that was said, as far as these events tell: in the first segment from the beginning. */
  readonly said: readonly Message[];
  /** Turns that have ended in this segment, oldest first. */
  readonly turns: readonly EndedTurn[];
  /** By the id of the scheduling event, which is the activity's id too. */
  readonly inFlight: ReadonlyMap<number, InFlight>;
  /** Call id, or `model` → why it stands still. */
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly ended: EndedFact | null;
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
  push(fact: HistoryFact): void;
  /** A snapshot: later events do not change it. */
  view(): Projection;
}

/**
 * Retells a run from its history with the same reducer that the workflow uses, so it works while no
 * worker is up. It only reads: where a history holds something unknown, that is passed over.
 */
export function createProjector(): Projector {
  const retelling = emptyRetelling();
  return {
    push: (fact) => retell(retelling, fact),
    view: () => {
      const {
        results: _,
        early: __,
        notStarted: ___,
        cancelTurnRequested: ____,
        ...told
      } = retelling;
      return {
        ...told,
        said: [...told.said],
        turns: [...told.turns],
        inFlight: new Map(told.inFlight),
        blocked: new Map(told.blocked),
      };
    },
  };
}

/** The run as all of these events tell it. */
export function project(facts: Iterable<HistoryFact>): Projection {
  const projector = createProjector();
  for (const fact of facts) projector.push(fact);
  return projector.view();
}
