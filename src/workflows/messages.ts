import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { Resolution } from '../core/calls/call-result.js';
import type { AgentDefinition, Limits } from '../core/definition/definition.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import type { Outcome } from '../core/outcome.js';
import type { EffectiveLimits } from '../core/state.js';
import type { Pending, PromptPage, RunStatus, TranscriptPage } from '../core/status.js';

/** A range of messages by number. */
export interface TranscriptRange {
  /** Number of the first message, from 0; default: 0. */
  readonly from?: number;
  /** Number of the first message after the range; default: the end. */
  readonly to?: number;
  /** Includes refused attempts at an answer, as far as this segment has them. */
  readonly side?: boolean;
}

/** Returns the run's status. */
export const statusQuery = defineQuery<RunStatus>('status');
/** Returns a page of the run's messages. */
export const transcriptQuery = defineQuery<TranscriptPage, [TranscriptRange?]>('transcript');
/** Returns a page of the prompt, for perdure's workers. The range counts places, not message numbers. */
export const promptQuery = defineQuery<PromptPage, [{ from: number; to: number }]>('prompt');
/** Returns the decisions that the run waits for. */
export const pendingQuery = defineQuery<readonly Pending[]>('pending');
/** Returns the agent's definition that the run has pinned. */
export const definitionQuery = defineQuery<AgentDefinition>('definition');

/** Who decides: a claim of 1 to 200 characters that perdure records and does not verify. */
export interface ActorClaim {
  readonly by?: string;
}

/** Decides about a call that waits for a person. */
export const resolveUpdate = defineUpdate<{ readonly resolved: string }, [Resolution & ActorClaim]>(
  'resolve',
);
/** Sends the run a message. The run answers at once, whatever it is doing. */
export const askUpdate = defineUpdate<AskReceipt, [Ask]>('ask');

/**
 * Sends the run a message as a signal, for times without a worker: the server records it, and a worker
 * delivers it later. The message needs an `id`; one that came by update under the same id is the same
 * message. A refused message appears in the run's status.
 */
export const messageSignal = defineSignal<[Ask]>('message');

/** The outcome of a turn. `pending`: the wait was cut off by the end of a segment; send it again. */
export type TurnOutcome = Outcome | { readonly pending: true };

/** Waits for the end of a turn and returns its outcome. */
export const outcomeUpdate = defineUpdate<TurnOutcome, [{ readonly turn: number }]>('outcome');
/** Cancels the turn under way, if it is the one named by `turn`. An open run then waits for a message. */
export const cancelTurnUpdate = defineUpdate<
  { readonly cancelled: number },
  [ActorClaim & { readonly turn?: number }]
>('cancelTurn');
/** Pauses the run: work in flight ends, and nothing starts until `resume`. */
export const pauseUpdate = defineUpdate<{ readonly paused: true }, [ActorClaim]>('pause');
/** Replaces the limits that are given; the others stay. Returns all limits in force. */
export const setLimitsUpdate = defineUpdate<EffectiveLimits, [Limits & ActorClaim]>('setLimits');
/** Closes an open run: it accepts no more messages, and ends when it has handled those it has. */
export const closeUpdate = defineUpdate<{ readonly closing: true }, [ActorClaim]>('close');
/** Resumes a paused run, and attempts blocked work at once. */
export const resumeUpdate = defineUpdate<{ readonly resumed: true }, [ActorClaim]>('resume');
