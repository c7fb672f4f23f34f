import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { AgentDefinition, Limits } from '../../core/definition/definition.js';
import type { Ask, AskReceipt } from '../../core/input/inbox.js';
import type { BudgetReading, Lease, LeaseAsk, Settlement } from '../../core/rules/budget.js';
import type { Block, BlockAsk } from '../../core/rules/rate.js';
import type { GraphView } from '../../core/run/details.js';
import type { EffectiveLimits } from '../../core/state/state.js';
import type {
  PromptPage,
  RunStatus,
  TranscriptPage,
  TranscriptRange,
} from '../../core/state/status.js';
import type { RunArtifact } from '../../core/transcript/messages.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import type { Decision, DecisionReceipt, Request } from '../../core/transcript/request.js';

/**
 * The workflow type `agent`. Its arguments are the input and the state that one segment passes to
 * the next.
 */
export type AgentWorkflow = (input: unknown, carried?: unknown) => Promise<Outcome>;

/**
 * Returns the run's status.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { statusQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const { status, reason } = await handle.query(statusQuery);
 * console.log(status, reason);
 * ```
 */
export const statusQuery = defineQuery<RunStatus>('status');
/**
 * Returns a page of the run's messages.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { transcriptQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const { messages, total } = await handle.query(transcriptQuery, { from: 0, to: 20 });
 * console.log(messages.length, total);
 * ```
 */
export const transcriptQuery = defineQuery<TranscriptPage, [TranscriptRange?]>('transcript');
/** Returns a page of the prompt, for perdure's workers. The range counts places, not message numbers. */
export const promptQuery = defineQuery<PromptPage, [{ from: number; to: number }]>('prompt');
/**
 * Returns the open requests of the run, oldest first.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { pendingQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * for (const { id, shown } of await handle.query(pendingQuery)) console.log(id, shown);
 * ```
 */
export const pendingQuery = defineQuery<readonly Request[]>('pending');
/**
 * Returns the run's pinned agent definition.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { definitionQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const { model, tools } = await handle.query(definitionQuery);
 * console.log(model, tools.length);
 * ```
 */
export const definitionQuery = defineQuery<AgentDefinition>('definition');
/**
 * Returns the artifacts of the run without their values, oldest first.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { artifactsQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * for (const { name, kind } of await handle.query(artifactsQuery)) console.log(name, kind);
 * ```
 */
export const artifactsQuery = defineQuery<readonly RunArtifact[]>('artifacts');
/**
 * Returns the run's pinned graph and the run's position in it; null for a run of an agent without a
 * graph.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { graphQuery } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('mail-1');
 * const graph = await handle.query(graphQuery);
 * console.log(graph?.state.at?.node);
 * ```
 */
export const graphQuery = defineQuery<GraphView | null>('graph');

/** Who decides: a claim of 1 to 200 characters that perdure records and does not verify. */
export interface ActorClaim {
  /** The name of that person. Default: `by` of the client, if it has one. */
  readonly by?: string;
  /** The interface that has verified `by`, such as `http`; absent: `by` is a claim. Only a server sets it. */
  readonly door?: string;
}

/**
 * Sends the run a message. The run answers at once, regardless of its current work.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { askUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const args: [{ message: string; id: string }] = [{ message: 'And now?', id: 'm-1' }];
 * const { turn } = await handle.executeUpdate(askUpdate, { args, updateId: 'm-1' });
 * console.log(turn);
 * ```
 */
export const askUpdate = defineUpdate<AskReceipt, [Ask]>('ask');

/**
 * Sends the run a message as a signal, which needs no running worker: the server records it, and a
 * worker delivers it later. The message needs an `id`; an update with the same id is the same
 * message. A refused message appears in the run's status.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { messageSignal } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.signal(messageSignal, { message: 'And now?', id: 'm-1' });
 * ```
 */
export const messageSignal = defineSignal<[Ask]>('message');

/**
 * Pauses the run by a signal, which the server stores until a worker is available. This is the
 * kill switch.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { pauseSignal } from 'perdure/workflow';
 *
 * await new Client().workflow.getHandle('desk-1').signal(pauseSignal, { by: 'ops: ann' });
 * ```
 */
export const pauseSignal = defineSignal<[ActorClaim?]>('pause');

/**
 * Resumes the run by a signal, which the server stores until a worker is available. Reverses
 * `pauseSignal`. A run that is neither paused nor blocked does not change.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { resumeSignal } from 'perdure/workflow';
 *
 * await new Client().workflow.getHandle('desk-1').signal(resumeSignal, { by: 'ops: ann' });
 * ```
 */
export const resumeSignal = defineSignal<[ActorClaim?]>('resume');

/**
 * Gives the run a workflow task, in which it notices that its deployment has moved to another build.
 * A blocked run has no other: the server repeats its attempts without the workflow.
 */
export const wakeSignal = defineSignal('wake');

/**
 * The outcome of a turn. `pending`: the wait was cut off by the end of a segment; send it again.
 */
export type TurnOutcome = Outcome | { readonly pending: true };

/**
 * Waits for the end of a turn and returns its outcome.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { outcomeUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const outcome = await handle.executeUpdate(outcomeUpdate, { args: [{ turn: 1 }] });
 * console.log('pending' in outcome ? 'ask again' : outcome.answer);
 * ```
 */
export const outcomeUpdate = defineUpdate<TurnOutcome, [{ readonly turn: number }]>('outcome');
/**
 * Cancels the turn under way, if it is the one named by `turn`. An open run then waits for a
 * message.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { cancelTurnUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const { cancelled } = await handle.executeUpdate(cancelTurnUpdate, { args: [{ turn: 2 }] });
 * console.log(cancelled);
 * ```
 */
export const cancelTurnUpdate = defineUpdate<
  { readonly cancelled: number },
  [ActorClaim & { readonly turn?: number }]
>('cancelTurn');
/**
 * Pauses the run: work in flight ends, and nothing starts until `resume`.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { pauseUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.executeUpdate(pauseUpdate, { args: [{ by: 'ops: ann' }] });
 * ```
 */
export const pauseUpdate = defineUpdate<{ readonly paused: true }, [ActorClaim]>('pause');
/**
 * Replaces the specified limits; the others stay. Returns all limits in force.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { setLimitsUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.executeUpdate(setLimitsUpdate, { args: [{ run: { costUsd: 5 } }] });
 * ```
 */
export const setLimitsUpdate = defineUpdate<EffectiveLimits, [Limits & ActorClaim]>('setLimits');
/**
 * Closes an open run: it accepts no more messages, and ends after it has handled the waiting ones.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { closeUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.executeUpdate(closeUpdate, { args: [{}] });
 * ```
 */
export const closeUpdate = defineUpdate<{ readonly closing: true }, [ActorClaim]>('close');
/**
 * Resumes a paused run, and attempts blocked work at once.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { resumeUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.executeUpdate(resumeUpdate, { args: [{ by: 'ops: ann' }] });
 * ```
 */
export const resumeUpdate = defineUpdate<{ readonly resumed: true }, [ActorClaim]>('resume');

/**
 * Decides about requests: one decision, or a list that is accepted or refused as a whole. A refused
 * update leaves no trace in the run; the type of the failure is `Refused`, and the first of its
 * details the `RefusalReason`.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { pendingQuery, resolveUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const [request] = await handle.query(pendingQuery);
 * if (request !== undefined) {
 *   const decision = { request: request.id, digest: request.digest, as: 'deny', by: 'ann' } as const;
 *   await handle.executeUpdate(resolveUpdate, { args: [decision] });
 * }
 * ```
 */
export const resolveUpdate = defineUpdate<
  { readonly resolved: readonly DecisionReceipt[] },
  [Decision | readonly Decision[]]
>('resolve');
/**
 * Revokes a grant: later calls need approval again. Calls that have begun continue.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { revokeUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * await handle.executeUpdate(revokeUpdate, { args: [{ grant: 'g1', by: 'ann' }] });
 * ```
 */
export const revokeUpdate = defineUpdate<
  { readonly revoked: string },
  [ActorClaim & { readonly grant: string }]
>('revoke');
/**
 * Undoes a call by its tool's `undo`: the specified call, or else the last one that can be undone.
 * The rules for the tool apply, so this may raise a request first. The run's status shows the
 * result.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { undoUpdate } from 'perdure/workflow';
 *
 * const handle = new Client().workflow.getHandle('desk-1');
 * const { undoing } = await handle.executeUpdate(undoUpdate, { args: [{ by: 'ann' }] });
 * console.log(undoing);
 * ```
 */
export const undoUpdate = defineUpdate<
  { readonly undoing: string },
  [ActorClaim & { readonly call?: string }]
>('undo');
/** Takes a block of a model's allowance from workflow `rate`, for perdure's workers. */
export const takeUpdate = defineUpdate<Block, [BlockAsk]>('take');
/** Takes a lease of a budget from workflow `budget`, for perdure's workers. */
export const leaseUpdate = defineUpdate<Lease, [LeaseAsk]>('lease');
/** Gives a lease back to workflow `budget`. */
export const settleSignal = defineSignal<[Settlement]>('settle');
/** Returns what workflow `budget` knows of its day. */
export const budgetQuery = defineQuery<BudgetReading>('budget');
