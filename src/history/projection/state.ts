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
  /** The input of the activity. */
  readonly input: Readonly<Record<string, unknown>>;
  /** When it was scheduled: Unix time in ms. */
  readonly at: number;
}

/** Why work is blocked, and since which event of the history. */
export interface BlockedSince extends Blocked {
  readonly since: number;
}

export type EventOf<T extends HistoryEvent['type']> = Extract<HistoryEvent, { type: T }>;

export type EndedEvent = EventOf<'ended'>;

/** The state of a projection after some of the events; mutable. */
export interface ProjectionState {
  state: RunState | null;
  /** Null until the first event, and if that event is not of a run. */
  input: RunInput | null;
  /** All messages in the events, by number. The run state drops those that were summarized. */
  readonly messages: Message[];
  /** What a model call cost, by the number of the message that it produced. */
  readonly usageByMessage: Map<number, Usage>;
  /** Turns that have ended in this segment. */
  readonly turns: EndedTurn[];
  cancelTurnRequested: boolean;
  /** When the newest workflow task started, which is the workflow's clock: Unix time in ms. */
  taskAt: number;
  /** Refused messages that no workflow task has processed yet. */
  unseenRefusals: number;
  /** Messages that came before the agent was loaded. */
  readonly earlyMessages: EventOf<'update' | 'signal'>[];
  readonly inFlight: Map<number, InFlight>;
  readonly blocked: Map<string, BlockedSince>;
  /** Results of calls that failed before their tool started, in case they are abandoned. */
  readonly notStarted: Map<string, CallResult>;
  /** Results of calls whose probe was canceled, in case the turn was interrupted. */
  readonly canceledProbes: Map<string, CallResult>;
  /** Why the worker of the first workflow task could not load the agent. */
  localLoadProblem: ActivityProblem | null;
  /** The carried state of a run whose agent was not loaded yet. */
  unloaded: RunState | null;
  /** Calls that a person allowed although the provider asked for a safety check. */
  readonly acknowledged: Set<string>;
  ended: EndedEvent | null;
  /** The run's own outcome, once it has ended. */
  outcome: Outcome | null;
  cancelRequested: boolean;
  startedAt: number | null;
}

export function emptyProjectionState(): ProjectionState {
  return {
    state: null,
    input: null,
    messages: [],
    usageByMessage: new Map(),
    turns: [],
    cancelTurnRequested: false,
    taskAt: 0,
    unseenRefusals: 0,
    earlyMessages: [],
    inFlight: new Map(),
    blocked: new Map(),
    notStarted: new Map(),
    canceledProbes: new Map(),
    localLoadProblem: null,
    unloaded: null,
    acknowledged: new Set(),
    ended: null,
    outcome: null,
    cancelRequested: false,
    startedAt: null,
  };
}

/** Returns a copy that can be changed independently. */
export function copyProjectionState(projection: ProjectionState): ProjectionState {
  return {
    ...projection,
    messages: [...projection.messages],
    usageByMessage: new Map(projection.usageByMessage),
    turns: [...projection.turns],
    earlyMessages: [...projection.earlyMessages],
    inFlight: new Map(projection.inFlight),
    blocked: new Map(projection.blocked),
    notStarted: new Map(projection.notStarted),
    canceledProbes: new Map(projection.canceledProbes),
    acknowledged: new Set(projection.acknowledged),
  };
}

/** Returns the outcome that the workflow recorded, however it ended; null if it recorded none. */
export function outcomeOf({ result }: EndedEvent): Outcome | null {
  return isOutcome(result) ? result : null;
}
