import type { ModelPrice } from '../definition/definition.js';
import type { ContextFields, TurnContext } from '../input/turn-context.js';
import type { Json, JsonObject } from '../text/json.js';
import type { CallResult } from '../transcript/call-result.js';
import type { ToolCall } from '../transcript/messages.js';
import type {
  AttemptReport,
  Outcome,
  StopReason,
  ToolBlock,
  Usage,
} from '../transcript/outcome.js';

/** The usage of a turn or a run. */
export interface Spent {
  readonly steps: number;
  readonly toolCalls: number;
  readonly usage: Usage;
}

/** The calls of one model message, and the results so far, in call order. */
export interface Batch {
  readonly step: number;
  /** When the model requested the calls, Unix time in ms; a wait for a duration starts here. */
  readonly at: number;
  /** The span of the reply that requested the calls; absent if nothing is traced. */
  readonly span?: string;
  readonly calls: readonly ToolCall[];
  readonly results: readonly (CallResult | null)[];
}

/** A read that returned the same result several times. `digest` covers the call and its result. */
export interface SameRead {
  readonly digest: string;
  readonly step: number;
  readonly count: number;
}

/**
 * A side branch of the transcript: refused answers, and the repair requests to the model. It is
 * part of the prompt until an answer is accepted. Then it is dropped; its costs still count.
 */
export interface SideBranch {
  /**
   * The number of messages in memory before the branch; the other fields are the transcript's at
   * that time.
   */
  readonly messages: number;
  readonly head: string;
  readonly tokens: number;
  readonly promptTokens: number;
}

/** Places in the prompt: from each first one up to, but not including, the second. */
export type Places = readonly (readonly [from: number, to: number])[];

/** An answer that does not fit the agent's output. `issue` says what is wrong with it. */
export interface BestEffort {
  readonly output: Json;
  readonly issue: string;
}

/** Why work in flight was interrupted. */
export type Interruption = 'cancel' | 'cancelTurn' | 'wallMs';

/** An interruption of one turn, as opposed to the whole run. */
export type TurnInterruption = Exclude<Interruption, 'cancel'>;

/** The phase of a turn. */
export type TurnPhase =
  /** Between turns. `outcome`: of the last turn; null before the first one. */
  | { readonly type: 'idle'; readonly outcome: Outcome | null }
  /** The model decides what to do next. */
  | { readonly type: 'deciding' }
  /** The calls of one message are executed. */
  | { readonly type: 'acting'; readonly batch: Batch }
  /** The model repairs an answer that was refused. */
  | { readonly type: 'repairing'; readonly branch: SideBranch }
  /** The turn closes early, with at most one closing call. */
  | { readonly type: 'closing'; readonly reason: StopReason }
  /** The turn has ended, and the memo does not have its outcome yet. */
  | { readonly type: 'over'; readonly outcome: Outcome };

/** The turn under way, or the last one. */
export interface Turn {
  /** From 1; 0 before the first turn. */
  readonly number: number;
  /** Unix time in ms. */
  readonly startedAt: number;
  readonly spent: Spent;
  readonly phase: TurnPhase;
  /** The limit after which the turn makes no further deciding call; null if none was hit. */
  readonly limit: StopReason | null;
  /** Why the work in flight is being canceled; absent while nothing interrupts the turn. */
  readonly interruption?: TurnInterruption;
  /**
   * The newest `keyed` and `once` calls that succeeded in this turn: short signature, a space, call
   * id. A list, because a long turn adds to it at every step, and copying an object would be
   * slower.
   */
  readonly succeeded: readonly string[];
  /** The latest read, and in how many steps in a row it returned the same result. */
  readonly sameRead: SameRead | null;
  /** The number of messages received when one of them last woke a wait. */
  readonly wokenBy?: number;
  /** The named prompt of the turn's newest message that has one. */
  readonly prompt?: string;
  /** The joined context of the turn's messages; absent if none has one. */
  readonly context?: TurnContext;
  /** The joined settings of the turn's messages; absent if none has any. */
  readonly settings?: JsonObject;
  /** The documents for this turn have been retrieved. */
  readonly retrieved?: true;
  /** The agent's `remember` stored this turn or failed to do so. */
  readonly remembered?: true;
  /**
   * Places of the turn's own messages that were moved to a chunk of the prompt; absent if there are
   * none.
   */
  readonly offloaded?: Places;
  /** Number of answers in this turn that did not fit the agent's output contract. */
  readonly refusedAnswers?: number;
  /** With `best_effort`: the newest partially readable refused answer; absent if there was none. */
  readonly bestEffort?: BestEffort;
  /** The claimed senders of the turn's messages; absent if no sender specified a name. */
  readonly by?: readonly string[];
  /** Besides those, a sender without a name sent a message; absent if none did, or if none has one. */
  readonly anonymous?: true;
  /** Short signatures of denied calls. An identical call is denied without a new request. */
  readonly denied?: readonly string[];
  /** Number of denied calls in a row. */
  readonly denials?: number;
  /** A person declined to raise the limit that the turn has reached. */
  readonly limitKept?: true;
  /** Number of steps in a row in which every call failed. */
  readonly failedSteps: number;
  /** The newest failed attempts at model calls and lost results, at most ten. */
  readonly reports: readonly AttemptReport[];
  /** The first results of the turn that could not be stored; absent if there are none. */
  readonly lost?: readonly string[];
}

/** Returns zero for every count; the cost is null if the price is unknown. */
export function nothingSpent(price: ModelPrice | null): Spent {
  const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
  return { steps: 0, toolCalls: 0, usage: { ...usage, costUsd: price === null ? null : 0 } };
}

/** Returns a turn without usage and without data of an earlier turn. */
export function freshTurn(number: number, price: ModelPrice | null, startedAt = 0): Turn {
  return {
    number,
    startedAt,
    spent: nothingSpent(price),
    phase: number === 0 ? { type: 'idle', outcome: null } : { type: 'deciding' },
    limit: null,
    succeeded: [],
    sameRead: null,
    failedSteps: 0,
    reports: [],
  };
}

/** Returns the calls that are being executed; null if there are none. */
export function getOpenBatch({ turn }: { readonly turn: Turn }): Batch | null {
  return turn.phase.type === 'acting' ? turn.phase.batch : null;
}

/** Returns the call of the open batch with this id; undefined if there is none. */
export function openCallById(
  state: { readonly turn: Turn },
  id: string | undefined,
): ToolCall | undefined {
  return getOpenBatch(state)?.calls.find((call) => call.id === id);
}

/**
 * Returns the outcome of the turn, or of the last one between turns; null while a turn is under
 * way.
 */
export function getOutcome({ turn }: { readonly turn: Turn }): Outcome | null {
  const { phase } = turn;
  return phase.type === 'over' || phase.type === 'idle' ? phase.outcome : null;
}

/** Returns why the turn closes early; null while it does not. */
export function closingReason({ turn }: { readonly turn: Turn }): StopReason | null {
  return turn.phase.type === 'closing' ? turn.phase.reason : null;
}

/** Whether the model repairs an answer that was refused. */
export function isRepairing({ turn }: { readonly turn: Turn }): boolean {
  return turn.phase.type === 'repairing';
}

/** Whether a turn is under way. */
export function inTurn({ turn }: { readonly turn: Turn }): boolean {
  return turn.phase.type !== 'idle' && turn.phase.type !== 'over';
}

/** Input of `retrieve`. It names the prompt as a model call does. */
export interface RetrieveInput extends ContextFields {
  readonly upTo: number;
  readonly head: string;
  readonly definition: string;
  readonly turn: number;
  /** Prompt places of the turn's messages. */
  readonly own: Places;
  /** Why the run is blocked, if this is a probe. */
  readonly blocked?: ToolBlock;
}

/** Input of `remember`. It names the prompt as a model call does. */
export interface RememberInput extends Omit<RetrieveInput, 'blocked'> {
  readonly outcome: Outcome;
  /**
   * The same for each attempt, even after a reset: the newest call replaces the entry that a store
   * has for the key.
   */
  readonly key: string;
}
