import { ApplicationFailure } from '@temporalio/workflow';
import { misfit } from '../../core/guards/recorded.js';
import type { ActivityProblem } from '../../core/failure.js';

/**
 * A recorded result of an activity, checked: an activity may be completed by hand, with anything.
 * Throws the failure that an activity which cannot do its work would leave.
 */
export function fitting<T>(
  activity: string,
  fits: (value: unknown) => value is T,
  value: unknown,
): T {
  if (fits(value)) return value;
  const message = misfit(activity, value);
  const problem: ActivityProblem = { type: 'failed', reason: 'error', message };
  throw ApplicationFailure.create({
    type: 'Failed',
    nonRetryable: true,
    message,
    details: [problem],
  });
}
