import { ApplicationFailure } from '@temporalio/workflow';
import type { RefusalReason } from '../../core/requests/decision.js';
import { problemText } from '../../core/text/format-value.js';

/**
 * Throws the failure by which a validator rejects an update, if there is a problem. The caller
 * receives it, but the history does not record it. `reason` becomes the first of the failure's
 * details.
 */
export function refuse(problem: string | null, reason?: RefusalReason): void {
  if (problem === null) return;
  throw ApplicationFailure.create({
    type: 'Refused',
    nonRetryable: true,
    message: problemText(problem),
    ...(reason && { details: [reason] }),
  });
}
