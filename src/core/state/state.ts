import type { AgentDefinition, LimitSet, Limits, ModelPrice } from '../definition/definition.js';
import { type Inbox, emptyInbox } from '../input/inbox.js';
import type { JsonObject } from '../text/json.js';
import type { CallResult } from '../transcript/call-result.js';
import type { ContextRef, RunArtifact } from '../transcript/messages.js';
import type { Outcome } from '../transcript/outcome.js';
import type { Grant } from '../transcript/request.js';
import { type Transcript, emptyTranscript } from '../transcript/transcript.js';
import { type Spent, type Turn, freshTurn, nothingSpent } from './turn.js';
import type { KeptCall } from './undo.js';
import type { Work } from './work.js';

/** The update by which a person decided about a run. */
export type ControlDecision =
  | 'resolve'
  | 'cancelTurn'
  | 'pause'
  | 'resume'
  | 'setLimits'
  | 'close'
  | 'revoke'
  | 'undo';

/** A decision that the run has carried out. */
export interface RecordedDecision {
  readonly what: ControlDecision;
  /**
   * The update's id. Sending the same update again has no second effect, even in a later segment.
   */
  readonly id: string;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
  /** Who decided: a claim of the caller, unless an interface has verified it. */
  readonly by?: string;
  /** The interface that has verified `by`; absent: a claim. */
  readonly door?: string;
  /** For `cancelTurn`: the number of the turn that was canceled. */
  readonly turn?: number;
  /** For `resolve`: the request's id and the decision; `expired` if no decision came in time. */
  readonly request?: string;
  readonly as?: string;
  /** For `some`: the ids of the actions of the plan that it chooses. */
  readonly actions?: readonly string[];
  /** For `resolve` and `undo`: the call's id. */
  readonly call?: string;
  /** For `revoke`: the grant's id. Absent in older histories. */
  readonly grant?: string;
  /** For `setLimits`: what was set, as on the command line: `cost-usd=0.5`. Absent in older histories. */
  readonly limits?: string;
  /** Why a worker rejected the decision; the request stayed open. */
  readonly refused?: string;
}

/** A run's position in its graph. It is part of the run's state. */
export interface GraphState {
  /** The fields that have a value. */
  readonly values: JsonObject;
  /** The run's current node; null between turns. */
  readonly at: GraphPlace | null;
  /** The nodes that the run has visited, in the order of their first visits. */
  readonly visited: readonly NodeVisits[];
  /** The plan that a person has confirmed in this turn. Only a `confirm` node can write this. */
  readonly confirmed?: ConfirmedPlan;
  /** The results of a visit's calls at the time of its interruption. */
  readonly interrupted?: Interrupted;
  /** The newest run of each `agent` node that continues its conversation. */
  readonly conversations?: readonly Conversation[];
  /** The node at which the first turn of a fork begins; absent once it has begun. */
  readonly begins?: string;
}

/** The plan that a person approved. */
export interface ConfirmedPlan {
  /** SHA-256 (hex) of the actions as canonical JSON. */
  readonly digest: string;
  /** The actions whose arguments were complete when they were shown. */
  readonly actions: readonly string[];
}

/** The results of an interrupted visit that may resume. */
export interface Interrupted {
  readonly node: string;
  readonly visit: number;
  readonly results: readonly CallResult[];
}

/** A conversation with a called agent, which the next visit of the node continues. */
export interface Conversation {
  readonly node: string;
  readonly agent: string;
  /** Workflow id of the agent's run. */
  readonly run: string;
}

/** A visit of a node. */
export interface GraphPlace {
  readonly node: string;
  /** Number of the visit among all visits of the node in the run, from 1. */
  readonly visit: number;
  /** When it began, Unix time in ms. */
  readonly since: number;
}

/** A run's visits of one node, in all its turns. */
export interface NodeVisits {
  readonly node: string;
  /** Number of visits in the current turn, or in the last one between turns. */
  readonly inTurn: number;
  readonly total: number;
  /** Total duration of all ended visits in ms. */
  readonly ms: number;
  /** How often each exit was taken. Exits that were never taken are absent. */
  readonly taken: readonly { readonly exit: string; readonly count: number }[];
}

/**
 * The limits in force: the agent's, as changed by the run's input. `depth` counts from the root
 * run.
 */
export interface EffectiveLimits {
  readonly turn: LimitSet;
  readonly run: LimitSet;
}

/**
 * The size at which a segment is full, so that the run continues in a new one between two steps.
 */
export interface SegmentSize {
  readonly steps: number;
  /** Bytes of history. */
  readonly bytes: number;
  /** Events of history, even if the segment has added no message; default: 4,000. */
  readonly events?: number;
}

/**
 * The version of what decisions, messages about requests, and failed results mean. Raise it if a
 * recorded one would now mean something else: a run of an earlier version keeps the earlier meaning
 * of what was recorded, or its history would no longer replay.
 */
export const SEMANTICS = 2;
/** The id of the patch by which a run without `semantics` adopts them for its next decisions. */
export const SEMANTICS_PATCH = 'semantics-2';
/** The id of the patch by which a segment notes that it has met a worker without activities. */
export const NO_ACTIVITIES_PATCH = 'no-activities';

/**
 * The id of the patch by which a decision breaks off a look for the tool that it is about. Earlier, the
 * decision waited for the end of that look.
 */
export const DECIDED_PROBE_PATCH = 'decided-probe';

/** Everything that is pinned at the start of a run. */
export interface RunConfig {
  readonly definition: AgentDefinition;
  /** Absent in a run that a version before `SEMANTICS` 2 began. */
  readonly semantics?: typeof SEMANTICS;
  /**
   * Of a newer definition that a message requested: grants end if their tools differ in it. Absent if
   * a version loaded it that let them hold on.
   */
  readonly endsGrants?: true;
  /**
   * The run records digests of its messages, no pause that changes nothing, the scope of a limit that it
   * asks to raise, and when a call that can be undone was executed, and its requests have digests of their
   * own. Absent in a run that an earlier version began.
   */
  readonly revised?: true;
  readonly limits: EffectiveLimits;
  /** Null if the model's price is unknown. */
  readonly price: ModelPrice | null;
  /** The highest prices among the model and its fallbacks; absent if those of the model are. */
  readonly highestPrice?: ModelPrice;
  /** The model's context window in tokens; absent if unknown. */
  readonly window?: number;
  /** Names of the search attributes that the namespace has. */
  readonly searchAttributes: readonly string[];
  /** The run's `context`, if it is too large to be sent with each call. */
  readonly contextBlob?: ContextRef;
  /** Default: `SEGMENT`. */
  readonly segment?: SegmentSize;
  /** Heartbeat timeout of model calls and retrievals in ms; default: `HEARTBEAT_MS`. */
  readonly heartbeatMs?: number;
  /** How many agents are above this run; absent for a run that no agent has called. */
  readonly depth?: number;
  /** The span of a called agent, below which its first turn is traced. */
  readonly span?: string;
  /** The workers' functions for requests; absent if they have neither. */
  readonly decisions?: {
    /** The workers have `mayDecide`, so each decision is checked on a worker. */
    readonly mayDecide?: true;
    /** The workers have `notify`, which is called for each request. */
    readonly notify?: true;
  };
}

/**
 * Whether a decision, a message, or a result keeps the meaning that it had before `SEMANTICS`.
 * `patched`: a version with `SEMANTICS` received it in a run without them.
 */
export function keepsEarlierMeaning(
  { config }: Pick<RunState, 'config'>,
  { patched }: { readonly patched?: boolean },
): boolean {
  return config.semantics === undefined && patched !== true;
}

/** Whether a run denies its requests itself, because no person decides about them. */
export function decidesItself(state: Pick<RunState, 'config' | 'unattended'>): boolean {
  return state.unattended === 'deny' && state.config.revised === true;
}

/** Default heartbeat timeout in ms: how soon the server notices that a worker has died. */
export const HEARTBEAT_MS = 10_000;

/** The default size of a segment. */
export const SEGMENT: SegmentSize = { steps: 100, bytes: 2 * 1024 * 1024 };

/** Why the run accepts no further turns. */
export type Ending = 'closed' | 'cancelled' | 'wallMs';

/** A turn that has ended, as the run remembers it. */
export interface FinishedTurn {
  readonly turn: number;
  readonly outcome: Outcome;
}

/** The state of a run as plain JSON, so that it can be passed by value to the next segment. */
export interface RunState {
  readonly schema: 2;
  readonly config: RunConfig;
  /** The run waits for more messages after a turn instead of ending with it. */
  readonly open: boolean;
  /** Unix time in ms; the run's wall time starts here. */
  readonly startedAt: number;
  readonly transcript: Transcript;
  readonly inbox: Inbox;
  readonly total: Spent;
  readonly turn: Turn;
  /** The latest turns that have ended, newest last; at most `RECENT_TURNS`. */
  readonly recent: readonly FinishedTurn[];
  readonly ending: Ending | null;
  readonly paused: boolean;
  /** Number of segments so far, including this one. */
  readonly segments: number;
  /** The run's counts when this segment began. */
  readonly segmentFrom: {
    readonly steps: number;
    readonly message: number;
    /** Visits of the graph's nodes; absent for a run of an agent. */
    readonly visits?: number;
  };
  /** Number of the first message that is not in the archive. */
  readonly archived: number;
  readonly compaction: CompactionState;
  /** Parameters that the model's server has refused in this run. */
  readonly dropped?: readonly string[];
  /** Values that tools have made and that later calls can name, oldest first; absent if none. */
  readonly artifacts?: readonly RunArtifact[];
  /** The run whose messages this one began with. */
  readonly forkedFrom?: ForkPoint;
  /** The definition that a person accepted, by the name of a tool that its MCP server changed. */
  readonly accepted?: Readonly<Record<string, string>>;
  /** The newest decisions of people about the run, oldest first; absent if none. */
  readonly decisions?: readonly RecordedDecision[];
  /** Number of all decisions of people about the run; absent if none. */
  readonly decisionsTotal?: number;
  /** The work that the run has begun and not finished, in the order in which it began. */
  readonly work: readonly Work[];
  /** Limits that people have set before the agent was loaded; absent if none. */
  readonly requestedLimits?: readonly RequestedLimits[];
  /** A segment that could not end is tried again from this step, or from this Unix time in ms. */
  readonly stayUntil?: { readonly step: number; readonly at: number };
  /** The run keeps its messages in the archive. */
  readonly archives?: true;
  /** The run begins with messages of another run, which are not copied yet. */
  readonly forks?: true;
  /** First execution run id: with namespace and workflow id it identifies the run permanently. */
  readonly firstRunId?: string;
  /** Number of requests raised so far; absent if none. */
  readonly requests?: number;
  /** Approvals that hold for later calls, oldest first; absent if none. */
  readonly grants?: readonly Grant[];
  /** The newest calls that can be undone, oldest first; absent if none. */
  readonly kept?: readonly KeptCall[];
  /** No person is available to decide, so requests are denied. */
  readonly unattended?: 'deny';
  /**
   * Notes for the model with the next message, such as that a call was undone; absent if there are
   * none.
   */
  readonly notes?: readonly string[];
  /** The run's position in its graph; absent for a run of an agent. */
  readonly graph?: GraphState;
  /**
   * Inline tools that a worker could not execute inline in this segment, so their calls are
   * activities until the next one; absent if there are none.
   */
  readonly notInline?: readonly string[];
}

/** A person's limits for a run whose agent is not loaded yet. */
export interface RequestedLimits {
  readonly limits: Limits;
  readonly decision: RecordedDecision;
}

/** A place in another run: before its message number `at`. */
export interface ForkPoint {
  /** Workflow id of the other run. */
  readonly run: string;
  /** Run id of its first segment. */
  readonly runId: string;
  readonly at: number;
  /** The node of that run's graph at which this one began; absent if it began with a message. */
  readonly node?: string;
  /** Which of that node's visits, from 1; absent if this one began with a message. */
  readonly visit?: number;
}

/** When to summarize the prompt. */
export interface CompactionState {
  /** Tokens of the prompt: the provider's last count, plus estimates of what came after it. */
  readonly promptTokens: number;
  /** The provider found the prompt too long. */
  readonly wanted: boolean;
  /**
   * No compaction is attempted below this many tokens, because the last one failed or saved little.
   */
  readonly notBelow: number;
}

/** Number of ended turns that a run remembers. */
export const RECENT_TURNS = 10;
/** Maximum characters of JSON of these turns' outcomes together. */
export const RECENT_CHARACTERS = 64 * 1024;

/** Returns the state of a run before its first message. `startedAt`: Unix time in ms. */
export function initialState(
  config: RunConfig,
  { open = false, startedAt = 0 }: { open?: boolean; startedAt?: number } = {},
): RunState {
  const transcript = emptyTranscript(config.definition);
  return {
    schema: 2,
    config,
    open,
    startedAt,
    transcript,
    inbox: emptyInbox(),
    total: nothingSpent(config.price),
    turn: freshTurn(0, config.price),
    recent: [],
    ending: null,
    paused: false,
    segments: 1,
    segmentFrom: { steps: 0, message: 0 },
    archived: 0,
    compaction: { promptTokens: transcript.tokens, wanted: false, notBelow: 0 },
    work: [],
  };
}
