import type { AgentDefinition, LimitName, LimitSet, ModelPrice } from './definition/definition.js';
import type { CallResult } from './calls/call-result.js';
import type { Decision } from './decisions.js';
import { emptyInbox, type Inbox } from './inbox.js';
import type { Artifact, ContextRef, ToolCall } from './transcript/messages.js';
import type { Outcome, StopReason, Usage } from './outcome.js';
import type { AttemptReport } from './report.js';
import type { Transcript } from './transcript/transcript.js';
import { emptyTranscript } from './transcript/transcript.js';

/** What has been used, of a turn or of a run. */
export interface Spent {
  readonly steps: number;
  readonly toolCalls: number;
  readonly usage: Usage;
}

/** The calls of one model message, with the results that are known so far in call order. */
export interface Batch {
  readonly step: number;
  /** When the model asked for them, Unix time in ms; a wait for a duration counts from here. */
  readonly at: number;
  readonly calls: readonly ToolCall[];
  readonly results: readonly (CallResult | null)[];
}

/** `digest`: over the call's signature and its result. */
export interface SameRead {
  readonly digest: string;
  readonly step: number;
  readonly count: number;
}

export interface Turn {
  /** From 1; 0 before the first. */
  readonly number: number;
  /** Unix time in ms. */
  readonly startedAt: number;
  readonly spent: Spent;
  readonly batch: Batch | null;
  /**
   * The newest `keyed` and `once` calls that succeeded in this turn, as short signature and call id with a space
   * between. A list, for a long turn adds to it at every step, and an object would be copied key by key.
   */
  readonly succeeded: readonly string[];
  /** The latest read, and in how many steps in a row it came back the same. */
  readonly sameRead: SameRead | null;
  /** Of the run's messages, how many had come when one of them last woke a wait. */
  readonly wokenBy?: number;
  /** The documents for this turn were looked for. */
  readonly retrieved?: true;
  /** Answers of this turn that did not keep to the contract. */
  readonly refusedAnswers?: number;
  /** Steps in a row in which every call failed. */
  readonly failedSteps: number;
  /** A call was refused because this limit was used up. */
  readonly callsRefused: 'toolCalls' | 'depth' | null;
  readonly deadlineReached: boolean;
  /** The latest model call's output was capped by this limit, not by the settings. */
  readonly clippedBy: LimitName | null;
  /** The forced ending has begun, for this reason; its closing call is asked at most once. */
  readonly closing: StopReason | null;
  /** The newest failed attempts of model calls, at most ten. */
  readonly reports: readonly AttemptReport[];
  /** Attempts at an answer that did not keep to the contract; null or absent: none is under way. */
  readonly branch?: SideBranch | null;
  readonly outcome: Outcome | null;
  /** The outcome stands in the memo. */
  readonly recorded: boolean;
}

/**
 * A side branch of the transcript: answers that were refused, and what the model was told of them.
 * It goes to the model until an answer is accepted, and is then pruned; it stays paid for.
 */
export interface SideBranch {
  /** How many messages stood in memory before it, and the transcript's figures then. */
  readonly messages: number;
  readonly head: string;
  readonly tokens: number;
  readonly promptTokens: number;
}

/** The limits in force: the agent's, as lowered by the run's input. `depth` counts from the root run. */
export interface EffectiveLimits {
  readonly turn: LimitSet;
  readonly run: LimitSet;
}

/** When a segment is full and the run goes on in a new one, between two steps. */
export interface SegmentSize {
  readonly steps: number;
  /** Bytes of history. */
  readonly bytes: number;
  /** Events of history, also where the run has said nothing; absent: 4,000. */
  readonly events?: number;
}

/** Everything that is pinned at the start of a run. */
export interface RunConfig {
  readonly definition: AgentDefinition;
  readonly limits: EffectiveLimits;
  /** Null where nobody knows the model's price. */
  readonly price: ModelPrice | null;
  /** Tokens that the model reads at most; absent where nobody knows. */
  readonly window?: number;
  /** Names of the search attributes that the namespace has. */
  readonly searchAttributes: readonly string[];
  /** The run's `context` where it is too large to travel with each call. */
  readonly contextBlob?: ContextRef;
  /** Absent: `SEGMENT`. */
  readonly segment?: SegmentSize;
  /** Heartbeat timeout of model calls and retrievals in ms; absent: `HEARTBEAT_MS`. */
  readonly heartbeatMs?: number;
  /** How many agents stand above this run; absent for one that was started from outside. */
  readonly depth?: number;
}

/** Default heartbeat timeout, in ms: how soon the server notices that a worker has died. */
export const HEARTBEAT_MS = 10_000;

export const SEGMENT: SegmentSize = { steps: 100, bytes: 2 * 1024 * 1024 };

/** Why the run takes no further turn. */
export type Ending = 'closed' | 'cancelled' | 'wallMs';

/** A turn that is over, as far as the run remembers it. */
export interface EndedTurn {
  readonly turn: number;
  readonly outcome: Outcome;
}

/** The whole of a run as plain JSON: it can be carried over by value into the next segment. */
export interface RunState {
  readonly schema: 1;
  readonly config: RunConfig;
  /** Waits for more messages after a turn instead of ending with it. */
  readonly open: boolean;
  /** Unix time in ms; the run's own wall time counts from here. */
  readonly startedAt: number;
  readonly transcript: Transcript;
  readonly inbox: Inbox;
  readonly total: Spent;
  readonly turn: Turn;
  /** The latest turns that are over, newest last; `RECENT_TURNS` of them. */
  readonly recent: readonly EndedTurn[];
  readonly ending: Ending | null;
  readonly paused: boolean;
  /** Segments so far, this one included. */
  readonly segments: number;
  /** Where this segment began. */
  readonly segmentFrom: { readonly steps: number; readonly message: number };
  /** Messages before this one are in the archive. */
  readonly archived: number;
  readonly compaction: CompactionState;
  /** Parameters that the model's server has refused in this run. */
  readonly dropped?: readonly string[];
  /** What tools have made and later calls can name, oldest first; absent where there is nothing. */
  readonly artifacts?: readonly Artifact[];
  /** The run began with the messages of another one. */
  readonly forkedFrom?: ForkPoint;
  /** By name of a tool that its MCP server has changed: the form that a person has accepted. */
  readonly accepted?: Readonly<Record<string, string>>;
  /** The newest decisions of people about the run, oldest first; absent: none. */
  readonly decisions?: readonly Decision[];
}

/** The messages before number `at` of another run. */
export interface ForkPoint {
  readonly run: string;
  /** Of its first segment. */
  readonly runId: string;
  readonly at: number;
}

export interface CompactionState {
  /** Tokens of the prompt: what the provider counted last, and estimates of what came after it. */
  readonly promptTokens: number;
  /** The provider found the prompt too long. */
  readonly wanted: boolean;
  /** A compaction has failed or brought nothing; none is tried below so many tokens. */
  readonly notBelow: number;
}

export const RECENT_TURNS = 10;
/** Of their outcomes as JSON, all together. */
export const RECENT_CHARACTERS = 64 * 1024;

export function nothingSpent(price: ModelPrice | null): Spent {
  const costUsd = price === null ? null : 0;
  return {
    steps: 0,
    toolCalls: 0,
    usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd },
  };
}

/** A turn that has used nothing; nothing of an earlier turn can leak into it. */
export function freshTurn(number: number, price: ModelPrice | null, startedAt = 0): Turn {
  return {
    number,
    startedAt,
    spent: nothingSpent(price),
    batch: null,
    succeeded: [],
    sameRead: null,
    failedSteps: 0,
    callsRefused: null,
    deadlineReached: false,
    clippedBy: null,
    closing: null,
    reports: [],
    outcome: null,
    recorded: false,
  };
}

export function initialState(
  config: RunConfig,
  { open = false, startedAt = 0 }: { open?: boolean; startedAt?: number } = {},
): RunState {
  const transcript = emptyTranscript(config.definition);
  return {
    schema: 1,
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
  };
}

/** A turn is under way. */
export function inTurn({ turn }: RunState): boolean {
  return turn.number > 0 && turn.outcome === null;
}
