import { ApplicationFailure } from '@temporalio/workflow';
import { problemText } from '../core/text/format-value.js';

/**
 * Throws the failure with which a validator rejects an update, if there is a problem. The caller
 * receives it; the history does not record it.
 */
export function refuse(problem: string | null): void {
  if (problem === null) return;
  throw ApplicationFailure.create({
    type: 'Refused',
    nonRetryable: true,
    message: problemText(problem),
  });
}
