import type { CallResult } from '../../core/calls/call-result.js';
import type { ActivityProblem } from '../../core/failure.js';
import type { RunInput } from '../../core/input/input.js';
import type { Message, ToolCall } from '../../core/transcript/messages.js';
import type { Outcome, Usage } from '../../core/outcome.js';
import { isOutcome } from '../../core/guards/recorded.js';
import type { EndedTurn, RunState } from '../../core/state.js';
import type { Blocked } from '../../core/status.js';
import type { HistoryEvent } from '../decode-event.js';

/** An activity that is scheduled and has not ended. */
export interface InFlight {
  readonly activity: string;
  readonly activityId: string;
  readonly summary: string;
  readonly call: ToolCall | null;
  /** What the activity was given. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Unix time in ms of its scheduling. */
  readonly at: number;
}

/** Why something stands still, and since which event of the history. */
export interface BlockedSince extends Blocked {
  readonly since: number;
}

export type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>;

export type EndedEvent = EventOf<'ended'>;

/** What is known of a run after some of its events. */
export interface ProjectionState {
  state: RunState | null;
  /** Null until the first event, and for one that is no run's. */
  input: RunInput | null;
  /** All that the events tell to have been said, by number; a state forgets what was summarized. */
  readonly said: Message[];
  /** By number of the message that it brought: what the model call cost. */
  readonly paid: Map<number, Usage>;
  /** Turns that have ended in this segment. */
  readonly turns: EndedTurn[];
  cancelTurnRequested: boolean;
  /** When the newest workflow task began, by which the workflow's clock goes; Unix time in ms. */
  taskAt: number;
  /** Messages that were refused and that no workflow task has looked at yet. */
  unseenRefusals: number;
  /** Messages that came before the agent was loaded. */
  readonly early: EventOf<'update' | 'signal'>[];
  readonly inFlight: Map<number, InFlight>;
  readonly blocked: Map<string, BlockedSince>;
  /** Of calls that failed before their tool was entered, should they be given up. */
  readonly notStarted: Map<string, CallResult>;
  /** By call: its result if the probe that was broken off was broken off for good. */
  readonly brokenProbes: Map<string, CallResult>;
  /** Why the worker of the workflow task itself could not load the agent. */
  notHere: ActivityProblem | null;
  /** What a run without an agent has handed over to this segment. */
  unloaded: RunState | null;
  /** Calls that a person has let be executed in spite of the provider's doubts. */
  readonly acknowledged: Set<string>;
  ended: EndedEvent | null;
  /** The run's own outcome, once it has ended. */
  outcome: Outcome | null;
  cancelRequested: boolean;
  startedAt: number | null;
  lastEvent: number;
}

export function emptyProjectionState(): ProjectionState {
  return {
    state: null,
    input: null,
    said: [],
    paid: new Map(),
    turns: [],
    cancelTurnRequested: false,
    taskAt: 0,
    unseenRefusals: 0,
    early: [],
    inFlight: new Map(),
    blocked: new Map(),
    notStarted: new Map(),
    brokenProbes: new Map(),
    notHere: null,
    unloaded: null,
    acknowledged: new Set(),
    ended: null,
    outcome: null,
    cancelRequested: false,
    startedAt: null,
    lastEvent: 0,
  };
}

/** A copy that can be told more without the other hearing of it. */
export function copyOf(told: ProjectionState): ProjectionState {
  return {
    ...told,
    said: [...told.said],
    paid: new Map(told.paid),
    turns: [...told.turns],
    early: [...told.early],
    inFlight: new Map(told.inFlight),
    blocked: new Map(told.blocked),
    notStarted: new Map(told.notStarted),
    brokenProbes: new Map(told.brokenProbes),
    acknowledged: new Set(told.acknowledged),
  };
}

/** The outcome as the workflow itself recorded it, whichever way it ended. */
export function outcomeOf({ result }: EndedEvent): Outcome | null {
  return isOutcome(result) ? result : null;
}
