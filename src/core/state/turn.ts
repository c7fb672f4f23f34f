import type { ModelPrice } from '../definition/definition.js';
import { type ContextFields, turnContextShape } from '../input/turn-context.js';
import { type Json, isObject } from '../text/json.js';
import {
  type Infer,
  type Shape,
  amount,
  count,
  fields,
  json,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  shape,
  tagged,
  text,
  yes,
} from '../text/shape.js';
import type { CallResult } from '../transcript/call-result.js';
import {
  callShape,
  outcomeShape,
  reportShape,
  resultShape,
  stopReasonShape,
  usageShape,
} from '../transcript/message-shapes.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Outcome, StopReason, ToolBlock, Usage } from '../transcript/outcome.js';

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
interface SameRead {
  readonly digest: string;
  readonly step: number;
  readonly count: number;
}

/**
 * A side branch of the transcript: refused answers, and the repair requests to the model. It is
 * part of the prompt until an answer is accepted. Then it is dropped; its costs still count.
 */
interface SideBranch {
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
interface BestEffort {
  readonly output: Json;
  readonly issue: string;
}

/** Why work in flight was interrupted. */
export type Interruption = 'cancel' | 'cancelTurn' | 'wallMs';

/** An interruption of one turn, as opposed to the whole run. */
export type TurnInterruption = Exclude<Interruption, 'cancel'>;

/** The phase of a turn. */
type TurnPhase =
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

export const spentShape = fields<Spent>({ steps: count, toolCalls: count, usage: usageShape });
const batchFields = fields<Batch>({
  step: count,
  at: amount,
  span: optional(text),
  calls: list(callShape),
  results: list(nullable(resultShape)),
});
/** A batch has one result slot per call. */
const batch: Shape<Batch> = (value, at) => {
  const problem = batchFields(value, at);
  if (problem !== null || !isObject(value)) return problem;
  const { calls, results } = value;
  const paired = Array.isArray(calls) && Array.isArray(results) && calls.length === results.length;
  return paired ? null : `${at}.results: expected one place for each call`;
};

type PhaseOf<T extends TurnPhase['type']> = Extract<TurnPhase, { type: T }>;
const sideBranch = fields<SideBranch>({
  messages: count,
  head: text,
  tokens: amount,
  promptTokens: amount,
});
const phaseShape = tagged<TurnPhase, 'type'>('type', {
  idle: fields<PhaseOf<'idle'>>({ type: oneOf('idle'), outcome: nullable(outcomeShape) }),
  deciding: fields<PhaseOf<'deciding'>>({ type: oneOf('deciding') }),
  acting: fields<PhaseOf<'acting'>>({ type: oneOf('acting'), batch }),
  repairing: fields<PhaseOf<'repairing'>>({ type: oneOf('repairing'), branch: sideBranch }),
  closing: fields<PhaseOf<'closing'>>({ type: oneOf('closing'), reason: stopReasonShape }),
  over: fields<PhaseOf<'over'>>({ type: oneOf('over'), outcome: outcomeShape }),
});

/** A range in the prompt: the first place, and the place after the last. */
const place = shape<readonly [number, number]>(
  'two places',
  (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isSafeInteger),
);

/** The turn under way, or the last one. */
export const turnShape = object({
  /** From 1; 0 before the first turn. */
  number: count,
  /** Unix time in ms. */
  startedAt: amount,
  spent: spentShape,
  phase: phaseShape,
  /** The limit after which the turn makes no further deciding call; null if none was hit. */
  limit: nullable(stopReasonShape),
  /** Why the work in flight is being canceled; absent while nothing interrupts the turn. */
  interruption: optional(oneOf('cancelTurn', 'wallMs')),
  /**
   * The newest `keyed` and `once` calls that succeeded in this turn: short signature, a space, call
   * id. A list, because a long turn adds to it at every step, and copying an object would be
   * slower.
   */
  succeeded: list(text),
  /** The latest read, and in how many steps in a row it returned the same result. */
  sameRead: nullable(fields<SameRead>({ digest: text, step: count, count })),
  /** The number of messages received when one of them last woke a wait. */
  wokenBy: optional(count),
  /** The named prompt of the turn's newest message that has one. */
  prompt: optional(text),
  /** The joined context of the turn's messages; absent if none has one. */
  context: optional(turnContextShape),
  /** The joined settings of the turn's messages; absent if none has any. */
  settings: optional(jsonObject),
  /** The documents for this turn have been retrieved. */
  retrieved: optional(yes),
  /** The agent's `remember` stored this turn or failed to do so. */
  remembered: optional(yes),
  /**
   * Places of the turn's own messages that were moved to a chunk of the prompt; absent if there are
   * none.
   */
  offloaded: optional(list(place)),
  /** Number of answers in this turn that did not fit the agent's output contract. */
  refusedAnswers: optional(count),
  /** With `best_effort`: the newest partially readable refused answer; absent if there was none. */
  bestEffort: optional(fields<BestEffort>({ output: json, issue: text })),
  /** Number of steps in a row in which every call failed. */
  failedSteps: count,
  /** The claimed senders of the turn's messages; absent if no sender specified a name. */
  by: optional(list(text)),
  /** The interface that has verified the first of them; absent: a claim. */
  door: optional(text),
  /** Besides those, a sender without a name sent a message; absent if none did, or if none has one. */
  anonymous: optional(yes),
  /** Short signatures of denied calls. An identical call is denied without a new request. */
  denied: optional(list(text)),
  /** Number of denied calls in a row. */
  denials: optional(count),
  /** A person declined to raise the limit that the turn has reached. */
  limitKept: optional(yes),
  /** The newest failed attempts at model calls and lost results, at most ten. */
  reports: list(reportShape),
  /** The first results of the turn that could not be stored; absent if there are none. */
  lost: optional(list(text)),
});

/** The turn under way, or the last one. */
export type Turn = Infer<typeof turnShape>;

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
