import type { AgentDefinition, LimitName, LimitSet, Price } from './definition.js';
import type { CallResult } from './calls.js';
import type { BlobRef, ToolCall } from './messages.js';
import type { Outcome, StopReason, Usage } from './outcome.js';
import type { AttemptReport } from './report.js';
import type { Transcript } from './transcript.js';
import { emptyTranscript } from './transcript.js';

/** What has been used, of a turn or of a run. */
export interface Spent {
  readonly steps: number;
  readonly toolCalls: number;
  readonly usage: Usage;
}

/** The calls of one model message, with the results that are known so far in call order. */
export interface Batch {
  readonly step: number;
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
  readonly number: number;
  readonly spent: Spent;
  readonly batch: Batch | null;
  /** Signature → call id of the `keyed` and `once` calls that succeeded in this turn. */
  readonly succeeded: Readonly<Record<string, string>>;
  /** The latest read, and in how many steps in a row it came back the same. */
  readonly sameRead: SameRead | null;
  /** Steps in a row in which every call failed. */
  readonly failedSteps: number;
  /** A call was refused because the cap of calls was used up. */
  readonly callsRefused: 'toolCalls' | null;
  readonly deadlineReached: boolean;
  /** The latest model call's output was capped by this limit, not by the settings. */
  readonly clippedBy: LimitName | null;
  /** The forced ending has begun, for this reason; its closing call is asked at most once. */
  readonly closing: StopReason | null;
  /** The newest failed attempts of model calls, at most ten. */
  readonly reports: readonly AttemptReport[];
  readonly outcome: Outcome | null;
}

/** The limits in force: the agent's, as lowered by the run's input. `depth` counts from the root run. */
export interface EffectiveLimits {
  readonly turn: LimitSet;
  readonly run: LimitSet;
}

/** Everything that is pinned at the start of a run. */
export interface RunConfig {
  readonly definition: AgentDefinition;
  readonly limits: EffectiveLimits;
  /** Null where nobody knows the model's price. */
  readonly price: Price | null;
  /** Names of the search attributes that the namespace has. */
  readonly searchAttributes: readonly string[];
  /** The run's `context` where it is too large to travel with each call. */
  readonly contextBlob?: BlobRef;
}

/** The whole of a run as plain JSON: it can be carried over by value into the next segment. */
export interface RunState {
  readonly schema: 1;
  readonly config: RunConfig;
  readonly transcript: Transcript;
  readonly total: Spent;
  readonly turn: Turn;
  readonly segments: number;
}

export function nothingSpent(price: Price | null): Spent {
  const costUsd = price === null ? null : 0;
  return {
    steps: 0,
    toolCalls: 0,
    usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, costUsd },
  };
}

/** A turn that has used nothing; nothing of an earlier turn can leak into it. */
export function freshTurn(number: number, price: Price | null): Turn {
  return {
    number,
    spent: nothingSpent(price),
    batch: null,
    succeeded: {},
    sameRead: null,
    failedSteps: 0,
    callsRefused: null,
    deadlineReached: false,
    clippedBy: null,
    closing: null,
    reports: [],
    outcome: null,
  };
}

export function initialState(config: RunConfig): RunState {
  return {
    schema: 1,
    config,
    transcript: emptyTranscript(config.definition.hash),
    total: nothingSpent(config.price),
    turn: freshTurn(0, config.price),
    segments: 1,
  };
}
