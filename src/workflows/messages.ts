import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { AgentDefinition } from '../core/definition/definition.js';
import type { Resolution } from '../core/calls/call-results.js';
import type { Limits } from '../core/definition/definition.js';
import type { Ask, AskReceipt } from '../core/inbox.js';
import type { Outcome } from '../core/outcome.js';
import type { EffectiveLimits } from '../core/state.js';
import type { Pending, PromptPage, RunStatus, TranscriptPage } from '../core/status.js';

export interface TranscriptRange {
  /** First message wanted, from 0. */
  readonly from?: number;
  /** First message not wanted any more. */
  readonly to?: number;
  /** Side branches too: attempts at an answer that were pruned, as far as this segment has them. */
  readonly side?: boolean;
}

export const statusQuery = defineQuery<RunStatus>('status');
export const transcriptQuery = defineQuery<TranscriptPage, [TranscriptRange?]>('transcript');
/** For perdure's own workers: places in the prompt, not numbers of messages. */
export const promptQuery = defineQuery<PromptPage, [{ from: number; to: number }]>('prompt');
export const pendingQuery = defineQuery<readonly Pending[]>('pending');
export const definitionQuery = defineQuery<AgentDefinition>('definition');

/** Who decides: a claim of 1 to 200 characters, recorded and not verified. */
export interface Claim {
  readonly by?: string;
}

/** Settles a call whose outcome is unknown. */
export const resolveUpdate = defineUpdate<{ readonly resolved: string }, [Resolution & Claim]>(
  'resolve',
);
/** Gives the run a message; answered at once, whatever the run does. */
export const askUpdate = defineUpdate<AskReceipt, [Ask]>('ask');

/**
 * The same by signal, for when no worker is there: the server records it and a worker takes it later.
 * It needs an `id`; a message that came by update under the same one is the same message. What is
 * refused then appears in the run's status.
 */
export const messageSignal = defineSignal<[Ask]>('message');

export type TurnOutcome = Outcome | { readonly pending: true };

/** Waits for the end of a turn; `pending` where the wait is broken off: ask again. */
export const outcomeUpdate = defineUpdate<TurnOutcome, [{ readonly turn: number }]>('outcome');
/** Ends the turn under way, only this one where it is named; an open run then waits for its next message. */
export const cancelTurnUpdate = defineUpdate<
  { readonly cancelled: number },
  [Claim & { readonly turn?: number }]
>('cancelTurn');
/** Lets what is in flight finish and starts nothing more until `resume`. */
export const pauseUpdate = defineUpdate<{ readonly paused: true }, [Claim]>('pause');
/** Replaces the limits that are named; the others stay. */
export const setLimitsUpdate = defineUpdate<EffectiveLimits, [Limits & Claim]>('setLimits');
/** Takes no more messages; the run ends when those that it has are done. */
export const closeUpdate = defineUpdate<{ readonly closing: true }, [Claim]>('close');
/** Lets a blocked or paused run go on at once. */
export const resumeUpdate = defineUpdate<{ readonly resumed: true }, [Claim]>('resume');
