import { defineUpdate } from '@temporalio/workflow';
import type { Decision, DecisionReceipt } from '../../core/requests/decision.js';
import type { ActorClaim } from './definitions.js';

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
